import { createCipheriv, pbkdf2Sync } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SessionRow } from '../../core/storage/engine/tables.ts';
import { readFiles } from '../support/cli.ts';
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
  /** @returns whether the user is signed in to each server */
  const listSignedIn = async () => {
    const servers = (await running?.page.evaluate(() => window.callkey.listServers())) ?? [];
    return Object.fromEntries(servers.map(({ address, isSignedIn }) => [address, isSignedIn]));
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
    const other = openOnce(() => faultyProxy(harness.core.url));
    /** A server where the user hasn't chosen to stay signed in. */
    const unkept = openOnce(() => faultyProxy(harness.core.url));
    /** The app's folder once it has stored sessions, of which each test gets a copy. */
    let stored: string;
    let cookies: string;
    const sessions = () => harness.direct.storage.database.write('sessions');
    let storedSessions: SessionRow[];
    before(async () => {
      keyring = await startKeyring();
      bus = keyring;
      stored = freshDirectory();
      userData = stored;
      await launch();
      if (running) await chooseButton(running, 'Connect');
      expect((await state())?.persistence).to.deep.equal({ possible: true });
      await signIn(unkept.url, false);
      await signIn(other.url);
      await signIn();
      await quit();
      cookies = network.seen.at(-1)?.headers.cookie ?? '';
      storedSessions = await sessions().select();
    });
    after(closeBus);
    beforeEach(async () => {
      cpSync(stored, userData, { recursive: true });
      await sessions().delete();
      await sessions().insert(storedSessions);
    });

    it("is encrypted with the keyring's key, even without a desktop", () => {
      expect(readFileSync(sessionFile(), 'latin1')).to.match(/^v11/);
      for (const pair of cookies.split('; ')) {
        const value = pair.slice(pair.indexOf('=') + 1);
        for (const { path, text } of readFiles(userData)) expect(text.includes(value), path).to.equal(false);
      }
    });

    it('keeps the user signed in until they sign out, but only where they chose to stay signed in', async () => {
      const page = await launch();
      const session = (await state())?.session;
      expect(session?.ok && session.value.viewer.email).to.equal('ada@example.com');
      expect(await listSignedIn()).to.deep.equal({ [network.url]: true, [other.url]: true, [unkept.url]: false });
      expect((await page.evaluate(() => window.callkey.signOut())).ok).to.equal(true);
      await quit();

      const again = await launch();
      expect((await state())?.session).to.equal(null);
      await signIn();
      // The server recognizes the device, but nothing more.
      const names = (header = '') => header.split('; ').map((pair) => pair.replace(/=.*/, ''));
      const [attempt] = network.seen.filter(({ method }) => method === 'POST').slice(-1);
      expect(names(attempt?.headers.cookie).map((name) => name.replace(/_\w{8}(?=\.|$)/, ''))).to.have.members([
        'callkey_device',
        'callkey_device.sig',
      ]);
      for (const { url } of [network, other]) await again.evaluate((address) => window.callkey.forgetServer(address), url);
      await quit();
      expect(readdirSync(userData)).not.to.include('session');
    });

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
      await keyring.lock();
      const page = await launch();
      await page.getByText('Waiting for this system’s encrypted storage.').waitFor();
      await signIn(unkept.url);
      await page.evaluate((address) => window.callkey.selectServer(address), network.url);
      await keyring.answerPrompt('unlock');
      await home();
      await quit();
      await launch();
      await home();
      expect(await listSignedIn()).to.deep.equal({ [network.url]: true, [other.url]: true, [unkept.url]: true });
    });

    it('is kept while the keyring stays locked, and is ended where the user signed out since', async () => {
      const ends = () => other.seen.filter(({ method }) => method === 'DELETE').length;
      const endsBefore = ends();
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
      expect(await listSignedIn()).to.deep.equal({ [network.url]: true, [other.url]: false, [unkept.url]: false });
      expect(JSON.parse(readFileSync(join(userData, 'settings.json'), 'utf8'))).not.to.have.property('signedOut');
      // The first one is of the session that started while the keyring was locked.
      await until(() => ends() === endsBefore + 2);
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
