// Takes pictures of the real console in light and dark mode: with a folder, every screen in every state, at 100% and 200%, or else only
// the few that the pages show, with a hash of the code that draws each.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openInElectron } from '../support/browser.ts';
import { cleanUp } from '../support/clean-up.ts';
import { buildConsole } from '../support/electron.ts';
import { hashPictures, pictureFolder, pictures } from '../support/pictures.ts';
import { walkThrough } from '../support/screen-walkthrough.ts';

const [folder] = process.argv.slice(2);
const target = folder ?? pictureFolder;
const zooms = folder === undefined ? [1] : [1, 2];

mkdirSync(target, { recursive: true });
try {
  await buildConsole();
  const home = await openInElectron();
  const { app } = home;
  const zoom = (factor: number) =>
    app.evaluate(({ BrowserWindow }, to) => BrowserWindow.getAllWindows()[0]?.webContents.setZoomFactor(to), factor);
  /** Returns the window's content as a PNG. */
  const picture = async () => {
    // Waits for two frames: the first makes the change, the second shows it.
    await home.page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    const base64 = await app.evaluate(async ({ BrowserWindow }) => {
      const contents = BrowserWindow.getAllWindows()[0]?.webContents;
      // The first picture may still show the previous state.
      await contents?.capturePage();
      const image = await contents?.capturePage();
      return image?.toPNG().toString('base64') ?? '';
    });
    return Buffer.from(base64, 'base64');
  };
  for await (const { name, page } of walkThrough(async () => home)) {
    if (folder === undefined && !(name in pictures)) continue;
    for (const factor of zooms) {
      await zoom(factor);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const file = [name, colorScheme, ...(factor === 1 ? [] : [`${factor}x`])].join('-');
        writeFileSync(join(target, `${file}.png`), await picture());
        process.stdout.write(`${file}\n`);
      }
    }
    await zoom(1);
  }
  if (folder === undefined) writeFileSync(join(target, 'sources.json'), `${JSON.stringify(await hashPictures(), undefined, 2)}\n`);
} finally {
  await cleanUp();
}
