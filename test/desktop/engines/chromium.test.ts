import { describeBrowser, openInChromium, violationsOn, watch } from '../../support/browser.ts';
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
    // Runs only at the last width, which is narrow. accessibility.test.ts checks the wide screens, which look the same in Electron.
    async inspect(page) {
      const complaints = [...refused, ...(await violationsOn(page))];
      // Forgets the violations of the content security policy that axe causes, because they aren't the page's.
      refused.length = 0;
      return complaints;
    },
  });
});
