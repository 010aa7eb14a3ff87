import { expect } from 'chai';
import { colorRules, openInElectron, violationsOn } from '../support/browser.ts';
import { describeDesktop } from '../support/electron.ts';
import { walkThrough } from '../support/screen-walkthrough.ts';
import { skip } from '../support/suites.ts';

describeDesktop("the console's accessibility", () => {
  it('has no axe violations on any screen in either theme', async function () {
    // In Chromium, the screens look the same (engines/chromium.test.ts).
    if (process.env['ENGINES'] !== 'all') skip(this, 'ENGINES=all opens every screen in Electron');
    this.timeout(180_000);
    const violations: string[] = [];
    let stops = 0;
    for await (const { name, page } of walkThrough(openInElectron)) {
      stops += 1;
      // The themes differ only in their colors.
      for (const [colorScheme, rules] of [['light'], ['dark', colorRules]] as const) {
        // During a transition, the colors belong to neither theme.
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        violations.push(...(await violationsOn(page, rules)).map((violation) => `${name}, ${colorScheme}: ${violation}`));
      }
    }
    expect(violations.join('\n')).to.equal('');
    expect(stops).to.be.at.least(40);
  });
});
