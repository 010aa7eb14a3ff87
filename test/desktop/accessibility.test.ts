import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import { expect } from 'chai';
import { describeDesktop } from '../support/electron.ts';
import { openInElectron, type ScreenState, walkThrough } from '../support/screen-walkthrough.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describeDesktop('the accessibility of the console', () => {
  it('has no axe violation on any screen, in either theme', async function () {
    this.timeout(180_000);
    const found: string[] = [];
    let stops = 0;
    for await (const stop of walkThrough(openInElectron)) {
      stops += 1;
      for (const colorScheme of ['light', 'dark'] as const) {
        // During a transition, colours belong to neither theme.
        await stop.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        found.push(...(await findings(stop)).map((finding) => `${stop.name}, ${colorScheme}: ${finding}`));
      }
    }
    expect(found.join('\n')).to.equal('');
    expect(stops).to.be.at.least(40);
  });

  async function findings({ page }: ScreenState): Promise<string[]> {
    // A page keeps it until it loads again.
    if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
    const { violations }: AxeResults = await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`);
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id} at ${node.target}: ${node.failureSummary ?? ''}`));
  }
});
