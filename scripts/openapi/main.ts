// Writes core/openapi.json from the schemas and routes in core/contract: `npm run openapi`.
import { writeFileSync } from 'node:fs';
import { version } from '../../core/program.ts';
import { openapiDocument } from './document.ts';

writeFileSync(new URL('../../core/openapi.json', import.meta.url), `${JSON.stringify(openapiDocument(version), undefined, 2)}\n`);
