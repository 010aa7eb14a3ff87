import { createCipheriv, pbkdf2Sync } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import {
  chooseButton,
  describeDesktop,
  type Keyring,
  launchConsole,
  missingKeyring,
  type RunningConsole,
  type SessionBus,
  startBus,
  startKeyring,
} from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describeDesktop('a stored session', () => {
  if (missingKeyring !== undefined) {
    it.skip(`isn't tested: ${missingKeyring} isn't installed`);
    return;
  }
  const harness = openOnce(() => openCore());
  const network = openOnce(() => faultyProxy(harness.core.url));
  let bus: SessionBus | undefined;
  let userData: string;
  let running: RunningConsole | undefined;
  beforeEach(() => {
    userData = freshDirectory();
  });
  afterEach(() => running?.close());
  const closeBus = async () => {
    await bus?.close();
    bus = undefined;
  };

  const launch = async (desktop = '') => {
    running = await launchConsole({ userData, env: { ...bus?.env, XDG_CURRENT_DESKTOP: desktop } });
    await running.page.locator('h1').first().waitFor();
    return running.page;
  };
  const quit = async () => running?.close();
  const sessionFile = () => join(userData, 'session');
  const state = () => running?.page.evaluate(() => window.callkey.getStartupState());
  const signIn = async (server = network.url, keepSignedIn = true) => {
    const input = { server, email: 'ada@example.com', password, keepSignedIn };
    const answer = await running?.page.evaluate((argument) => window.callkey.signIn(argument), input);
    expect(answer?.ok).to.equal(true);
    // So that the proxy sees the session's cookies.
    await running?.page.evaluate(() => window.callkey.request('listApiKeys', {}));
  };
  const home = () => running?.page.getByRole('heading', { name: 'API keys', exact: true }).waitFor();

  describe('without a keyring', () => {
    before(async () => {
      bus = await startBus(false);
    });
    after(closeBus);

    for (const desktop of ['KDE', 'GNOME']) {
      it(`is never encrypted with Chromium's public key (desktop: ${desktop})`, async () => {
        const page = await launch(desktop);
        await signIn();
        expect(await page.evaluate(() => window.callkey.getStartupState().then(({ persistence }) => persistence))).to.include({
          possible: false,
        });
        expect(existsSync(sessionFile())).to.equal(false);
      });
    }
  });

  describe('with a keyring', () => {
    let keyring: Keyring;
    /** The app's folder once it has stored a session, of which each test gets a copy. */
    let stored: string;
    let cookies: string;
    before(async () => {
      keyring = await startKeyring();
      bus = keyring;
      stored = freshDirectory();
      userData = stored;
      await launch();
      await signIn();
      await quit();
      cookies = network.seen.at(-1)?.headers.cookie ?? '';
    });
    after(closeBus);
    beforeEach(() => cpSync(stored, userData, { recursive: true }));

    it("isn't used if it's encrypted with Chromium's public key", async () => {
      const pairs = cookies.split('; ').map((pair) => pair.split(/=(.*)/s, 2));
      const key = pbkdf2Sync('peanuts', 'saltysalt', 1, 16, 'sha1');
      const cipher = createCipheriv('aes-128-cbc', key, Buffer.alloc(16, ' '));
      const text = JSON.stringify([{ server: network.url, cookies: Object.fromEntries(pairs) }]);
      writeFileSync(sessionFile(), Buffer.concat([Buffer.from('v10'), cipher.update(text), cipher.final()]));
      const page = await launch();
      await page.getByText('The console couldn’t read your saved sessions, so sign in again.').waitFor();
      expect(existsSync(sessionFile())).to.equal(false);
    });

    it("is resumed as soon as the user unlocks the keyring, and isn't lost if they sign in elsewhere before", async () => {
      await using cleanup = new AsyncDisposableStack();
      const other = await faultyProxy(harness.core.url);
      cleanup.defer(() => other.close());
      await keyring.lock();
      const page = await launch();
      await page.getByText('Waiting for this system’s encrypted storage.').waitFor();
      await signIn(other.url);
      await page.evaluate((address) => window.callkey.selectServer(address), network.url);
      await keyring.answerPrompt('unlock');
      await home();
      await quit();
      await launch();
      await home();
      const servers = await running?.page.evaluate(() => window.callkey.listServers());
      expect(servers?.map(({ isSignedIn }) => isSignedIn)).to.deep.equal([true, true]);
    });

    it('is kept while the keyring stays locked, and is ended where the user signed out since', async () => {
      await using cleanup = new AsyncDisposableStack();
      const other = await faultyProxy(harness.core.url);
      cleanup.defer(() => other.close());
      await launch();
      if (running) await chooseButton(running, 'Connect');
      await signIn(other.url);
      await quit();
      const bytes = readFileSync(sessionFile());
      await keyring.lock();
      const page = await launch();
      await keyring.answerPrompt('dismiss');
      await page.getByText('Your keyring is locked, so the console can’t read your saved sessions.').waitFor();
      await signIn(other.url);
      await page.evaluate(() => window.callkey.signOut());
      await quit();
      expect(readFileSync(sessionFile()).equals(bytes)).to.equal(true);
      await keyring.lock();
      await launch();
      await keyring.answerPrompt('unlock');
      await until(async () => (await state())?.persistence?.possible === true);
      const servers = await running?.page.evaluate(() => window.callkey.listServers());
      expect(servers).to.have.deep.members([
        { address: other.url, email: 'ada@example.com', isSignedIn: false },
        { address: network.url, email: 'ada@example.com', isSignedIn: true },
      ]);
      expect(JSON.parse(readFileSync(join(userData, 'settings.json'), 'utf8'))).not.to.have.property('signedOut');
      // The first one is of the session that started while the keyring was locked.
      const ends = () => other.seen.filter(({ method }) => method === 'DELETE').length;
      await until(() => ends() === 2);
    });

    it("is set aside if it's damaged, and the user is told", async () => {
      const damaged = readFileSync(sessionFile()).fill(0, 20);
      writeFileSync(sessionFile(), damaged);
      const page = await launch();
      await page.getByText('The console couldn’t read your saved sessions').waitFor();
      await signIn();
      const name = readdirSync(userData).find((each) => each.startsWith('session.unreadable-')) ?? '';
      expect(readFileSync(join(userData, name)).equals(damaged)).to.equal(true);
    });
  });
});
