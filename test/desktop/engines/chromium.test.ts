import { colorRules, describeBrowser, openInChromium, violationsOn, watch } from '../../support/browser.ts';
import { testEngine, usualSize } from './engine.ts';

describeBrowser('the screens in Chromium', () => {
  let refused: string[] = [];

  testEngine({
    async open(url) {
      const home = await openInChromium('about:blank');
      // Transitions are off, because the colors belong to neither theme during a transition.
      await home.page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
      refused = watch(home.page);
      await home.page.goto(url);
      return home;
    },
    // Runs at the last width, which is narrow, and at the usual one.
    async inspect(page) {
      const complaints = [...refused, ...(await violationsOn(page))];
      await page.setViewportSize(usualSize);
      complaints.push(...(await violationsOn(page)));
      // The themes differ only in their colors.
      await page.emulateMedia({ colorScheme: 'dark' });
      complaints.push(...(await violationsOn(page, colorRules)));
      await page.emulateMedia({ colorScheme: 'light' });
      // Forgets the violations of the content security policy that axe causes, because they aren't the page's.
      refused.length = 0;
      return complaints;
    },
  });
});
