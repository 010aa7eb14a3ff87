import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { problemTable } from '#contract/problems.ts';

const page = readFileSync(new URL('../../core/docs/problems.md', import.meta.url), 'utf8');
/** The page's sections, by the code in their heading. The code matches the last part of a problem's type. */
const sections = new Map(
  [...page.matchAll(/^### `([\w-]+)`\n\n(.*)\n\n(.*)$/gm)].map(([, code, what, advice]) => [code, { what, advice }]),
);

describe('core/docs/problems.md', () => {
  it('has one section for each problem code', () => {
    expect([...sections.keys()]).to.have.members(Object.keys(problemTable));
  });

  for (const [code, { status, title }] of Object.entries(problemTable)) {
    it(`lists ${code}, and says what it means and what to do`, () => {
      expect(sections.get(code)?.what).to.match(new RegExp(`^\\*\\*${status} ${title}\\.\\*\\* .`));
      expect(sections.get(code)?.advice).to.match(/\.$/);
      expect(page).to.contain(`| ${status} | [\`${code}\`](#${code}) |`);
    });
  }
});
