import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { brunoCollection } from '../../scripts/openapi/bruno.ts';
import { openapiText } from '../support/openapi.ts';

const folder = fileURLToPath(new URL('../../core/docs/bruno', import.meta.url));
const written = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]),
);

describe('the Bruno collection', () => {
  it('matches core/openapi.json (to update it, run npm run openapi)', () => {
    expect(Object.fromEntries(written)).to.deep.equal(Object.fromEntries(brunoCollection(JSON.parse(openapiText))));
  });

  it('has every request except the signed ones', () => {
    const ids = openapiText.matchAll(/"operationId": "(\w+)"/g).map(([, id]) => id);
    const names = [...written.keys()].map((path) => path.replace(/^.*\/|\.bru$/g, ''));
    expect(names).to.have.members([...ids.filter((id) => id !== 'reportOutcome' && id !== 'handoff'), 'local', 'bruno.json']);
  });

  it('has no value for a secret', () => {
    expect(written.get('environments/local.bru')).to.match(/vars:secret \[\n {2}keyValue,\n {2}password\n\]/);
    expect(written.get('console/signIn.bru')).to.contain('"password": "{{password}}"');
  });
});
