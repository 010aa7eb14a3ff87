// Writes core/openapi.json from the schemas and routes in core/contract: `npm run openapi`.
import { readFileSync, writeFileSync } from 'node:fs';
import { openapiDocument } from './document.ts';

const root = new URL('../../', import.meta.url);
const { version }: { version: string } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
writeFileSync(new URL('core/openapi.json', root), `${JSON.stringify(openapiDocument(version), undefined, 2)}\n`);
