// Writes core/openapi.json from the schemas and routes in core/contract, and from that the Bruno collection: `npm run openapi`.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brunoCollection } from './bruno.ts';
import { openapiDocument } from './document.ts';

const root = new URL('../../', import.meta.url);
const { version }: { version: string } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const text = `${JSON.stringify(openapiDocument(version), undefined, 2)}\n`;
writeFileSync(new URL('core/openapi.json', root), text);

const collection = new URL('core/docs/bruno/', root);
rmSync(collection, { recursive: true, force: true });
for (const [path, content] of brunoCollection(JSON.parse(text))) {
  const file = fileURLToPath(new URL(path, collection));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
