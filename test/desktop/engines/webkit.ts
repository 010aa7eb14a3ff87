import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../scripts/support/postgres.ts';
import { freshDirectory } from '../../support/databases.ts';
import { until } from '../../support/until.ts';
import { type Driver, startProgram } from './driver.ts';

/**
 * Shrinks the browser's toolbar, which otherwise keeps the window from being narrower than 447 px. With this style, the limit is 290 px.
 */
const smallToolbar = '* { min-width: 0; margin: 0; border: none; padding: 0; font-size: 1px; }';

/** Starts WebKit with one page, and controls it over WebDriver. */
export async function startWebKit(webDriver: string): Promise<Driver> {
  const port = await freePort();
  const settings = freshDirectory();
  mkdirSync(join(settings, 'gtk-3.0'));
  writeFileSync(join(settings, 'gtk-3.0/gtk.css'), smallToolbar);
  const program = await startProgram(webDriver, [`--port=${port}`], {
    XDG_CONFIG_HOME: settings,
    // Without a graphics card, drawing takes half as long with this setting.
    WEBKIT_DISABLE_COMPOSITING_MODE: '1',
  });
  const send = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    const { value }: { value: unknown } = JSON.parse(await response.text());
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(value)}`);
    return value;
  };
  await until(() =>
    send('GET', '/status').then(
      () => true,
      () => false,
    ),
  );
  const { sessionId } = Object(await send('POST', '/session', { capabilities: {} }));
  const session = `/session/${sessionId}`;
  const evaluate = (expression: string) => send('POST', `${session}/execute/sync`, { script: `return (${expression});`, args: [] });
  const toolbarHeight = Number(await evaluate('outerHeight - innerHeight'));
  return {
    goTo: async (url) => void (await send('POST', `${session}/url`, { url })),
    evaluate,
    perform: async (actions) => void (await send('POST', `${session}/actions`, { actions })),
    async resize({ width, height }) {
      await send('POST', `${session}/window/rect`, { width, height: height + toolbarHeight });
      // WebKit 2.50 sometimes keeps the styles of the previous width. A new style sheet makes it apply all of them again.
      await until(async () => (await evaluate('(document.adoptedStyleSheets = [new CSSStyleSheet()], innerWidth)')) === width);
    },
    screenshot: async () => Buffer.from(String(await send('GET', `${session}/screenshot`)), 'base64'),
    async close() {
      await send('DELETE', session).catch(() => undefined);
      await program.kill();
    },
  };
}
