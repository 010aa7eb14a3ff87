// Follows a new administrator from `npm start` on an empty database to the first call in the list, without reading any page, and reports
// when each step was reached: `npm run first-call -- FOLDER`. Saves a frame to the folder whenever the page looks different. Types at the
// speed of a person.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { sharedBrowser } from '../support/browser.ts';
import { cleanUp } from '../support/clean-up.ts';
import { emptyDatabase, freshDirectory } from '../support/databases.ts';

const run = promisify(execFile);
const goalSeconds = 120;
const perLetterMs = 80;
const [folder = freshDirectory()] = process.argv.slice(2);
const from = performance.now();
const seconds = () => (performance.now() - from) / 1_000;
const reach = (step: string) => process.stdout.write(`${seconds().toFixed(1).padStart(6)} s  ${step}\n`);

mkdirSync(folder, { recursive: true });
const database = await emptyDatabase('sqlite');
const env = { ...process.env, DATABASE_URL: database, PORT: '0', MANAGEMENT_PORT: 'off' };
const core = spawn('npm', ['start'], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
try {
  const values = new Map<string, string>();
  const patterns = { email: /^ +email +(\S+)/, password: /one-time password +(\S+)/, url: /"url":"([^"]+)","msg":"listening"/ };
  const ready = Promise.withResolvers<void>();
  for (const input of [core.stdout, core.stderr])
    createInterface({ input }).on('line', (line) => {
      for (const [name, pattern] of Object.entries(patterns)) {
        const [, value] = pattern.exec(line) ?? [];
        if (value !== undefined) values.set(name, value);
      }
      if (Object.keys(patterns).every((name) => values.has(name))) ready.resolve();
    });
  await ready.promise;
  reach('the terminal shows the address and the one-time password');

  const page = await (await sharedBrowser()).newPage({ viewport: { width: 1280, height: 800 } });
  const devtools = await page.context().newCDPSession(page);
  devtools.on('Page.screencastFrame', ({ data, sessionId }) => {
    writeFileSync(join(folder, `${seconds().toFixed(2).padStart(6, '0')}.png`), Buffer.from(data, 'base64'));
    void devtools.send('Page.screencastFrameAck', { sessionId }).catch(() => undefined);
  });
  await devtools.send('Page.startScreencast', { format: 'png' });
  const type = (label: string, text: string) => page.getByLabel(label, { exact: true }).pressSequentially(text, { delay: perLetterMs });
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();

  await page.goto(values.get('url') ?? '');
  await type('Email', values.get('email') ?? '');
  await type('Password', values.get('password') ?? '');
  await press('Sign in');
  reach('signed in');
  await type('New password', 'seven words that only I know');
  await press('Change password');
  await press('Create and continue');
  await page.getByRole('heading', { name: 'No API keys yet' }).waitFor();
  reach('the organization, account and campaign exist');
  await press('Create your first key');
  await type('Name', 'Practice software');
  await page.getByRole('radio', { name: '1 Year', exact: true }).check();
  await press('Create Key');
  const command = await page.locator('dialog pre:not([aria-busy="true"])').innerText();
  const keyValue = await page.getByLabel('Key value').inputValue();
  await press("I've Saved It");
  await page.getByRole('link', { name: 'Calls', exact: true }).click();
  await page.getByText('No calls yet').waitFor();
  reach('the list of calls is empty');
  const placing = run('bash', ['-c', command]);
  placing.child.stdin?.end(`${keyValue}\n`);
  const { stdout } = await placing;
  if (!stdout.includes('"state":"queued"')) throw new Error(stdout);
  reach('the pasted command has placed a call');
  // The user returns from the terminal.
  await page.evaluate("dispatchEvent(new Event('focus'))");
  await page.getByRole('row', { name: '+493023125000' }).waitFor();
  reach(`the call is in the list: ${seconds() < goalSeconds ? 'under' : 'over'} ${goalSeconds} s`);
  await devtools.send('Page.stopScreencast');
} finally {
  if (core.pid !== undefined && core.exitCode === null) {
    process.kill(-core.pid, 'SIGTERM');
    await once(core, 'exit');
  }
  await cleanUp();
}
