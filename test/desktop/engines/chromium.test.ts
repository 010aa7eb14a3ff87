import { violationsOn } from '../../support/axe.ts';
import { describeBrowser, watch } from '../../support/chromium.ts';
import { openInChromium } from '../../support/screen-walkthrough.ts';
import { testEngine } from './engine.ts';

describeBrowser('the screens in Chromium', () => {
  let refused: string[] = [];

  testEngine({
    async open(url) {
      const home = await openInChromium('about:blank');
      // Transitions are off, because the colors belong to neither theme during a transition.
      await home.page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
      refused = watch(home.page);
      await home.page.goto(url);
      return home;
    },
    // Only in the last width, the narrow one. The wide screens in both themes are the same as in Electron (accessibility.test.ts).
    async inspect(page) {
      const complaints = [...refused, ...(await violationsOn(page))];
      // The page doesn't cause the changes that axe makes.
      refused.length = 0;
      return complaints;
    },
  });
});
