import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules whose result depends on colors. */
export const colorRules = ['color-contrast', 'link-in-text-block'] as const;

/** Returns the violations that axe finds on the page, by all of its rules or only by these. */
export async function violationsOn(page: Page, rules?: readonly string[]): Promise<string[]> {
  // A page keeps axe until it's reloaded.
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe);
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
  const { violations }: AxeResults = await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id} at ${node.target}: ${node.failureSummary ?? ''}`));
}
