// Electron loads this before the console (first-paint.ts). Prints when each stage was reached, and quits the app.
import { app } from 'electron';
import type { Marks } from './first-paint-marks.ts';

/** Resolves with the time when the sign-in form is visible: in the second frame after it was rendered. */
const whenDrawn = `new Promise((resolve) => {
  const look = () => {
    if (document.querySelector('input[type="password"]')) requestAnimationFrame(() => requestAnimationFrame(() => resolve(Date.now())));
    else requestAnimationFrame(look);
  };
  look();
})`;

const marks: Partial<Marks> = { 'main script': Date.now() };
const reach = (stage: keyof Marks) => () => {
  marks[stage] = Date.now();
};

app.once('ready', reach('Electron ready'));
app.once('browser-window-created', (_event, window) => {
  reach('window')();
  const visible = new Promise<void>((resolve) => window.once('show', () => resolve())).then(reach('window visible'));
  window.webContents.once('dom-ready', () => {
    reach('page parsed')();
    const drawn: Promise<number> = window.webContents.executeJavaScript(whenDrawn);
    void Promise.all([drawn, visible]).then(([at]) => {
      const form = Math.max(at, marks['window visible'] ?? 0);
      process.stdout.write(`${JSON.stringify({ ...marks, 'sign-in form': form })}\n`);
      app.quit();
    });
  });
});
