import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { problemTable } from '#contract/problems.ts';
import { openapiDocument } from '../../scripts/openapi/document.ts';
import examples from '../../scripts/openapi/examples.json' with { type: 'json' };
import { openapiText, schemaErrors } from '../support/http.ts';

const { version }: { version: string } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

describe('core/openapi.json', () => {
  it('matches the schemas (to update it, run npm run openapi)', () => {
    expect(openapiText).to.equal(`${JSON.stringify(openapiDocument(version), undefined, 2)}\n`);
  });

  it('names every problem code', () => {
    for (const code of Object.keys(problemTable)) expect(openapiText).to.include(`urn:callkey:problems#${code}"`);
  });

  for (const [name, example] of Object.entries(examples.bodies)) {
    it(`has a valid example of ${name}`, () => {
      expect(schemaErrors(`#/components/schemas/${name}`, example)).to.deep.equal([]);
    });
  }
});
