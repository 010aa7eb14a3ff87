import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { systemTiming } from '../../cli/client/timing.ts';
import { changeProfiles, setAlias } from '../../cli/connection/settings.ts';
import { xdgFolders } from '../../cli/state/folders.ts';
import { CliHome } from '../support/cli.ts';
import { skip } from '../support/suites.ts';

const keyValue = makeKeyValue(randomBytes);
const server = 'http://127.0.0.1:1';
const stored = '.local/share/callkey/keys/default@http.127.0.0.1:1';

function readJson(path: string): Record<string, object> {
  return JSON.parse(readFileSync(path, 'utf8'));
}

async function homeWithFile(): Promise<CliHome> {
  const home = new CliHome();
  const { code, stderr } = await home.run(['key', 'set', '--insecure-storage', '--server', server], {
    input: `X-API-Key: "${keyValue.replaceAll('_', '\\_').replace(/.{30}/, '$&\n')}"\n`,
  });
  expect(code, stderr).to.equal(0);
  return home;
}

describe('callkey key', () => {
  describe('set', () => {
    it("refuses a key as an argument, says why, and doesn't repeat it", async () => {
      const home = new CliHome();
      const commands = [
        ['key', 'set', keyValue],
        ['key', 'set', '--key', keyValue],
        ['key', 'set', `--key=${keyValue}`],
        ['key', 'set', '--insecure-storage', '--profile', keyValue],
        ['call', 'place', keyValue, '--phone', '+493012345678', '--verbose'],
        ['call', 'cancel', 'a-campaign', '--request-id', keyValue],
        [keyValue],
      ];
      for (const args of commands) {
        const { code, stdout, stderr } = await home.run(args, { input: keyValue, environment: { CALLKEY_SERVER: server } });
        expect(code).to.equal(2);
        expect(stdout + stderr).not.to.contain(keyValue);
        expect(stdout).to.equal('');
      }
      const { stderr } = await home.run(['key', 'set', 'anything']);
      expect(stderr)
        .to.match(/Don't pass a key on the command line/)
        .and.match(/ps/)
        .and.match(/revoke/);
      expect(home.files()).to.deep.equal([]);
    });

    it('reports a mistyped key immediately', async () => {
      const home = new CliHome();
      const mistyped = keyValue.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
      for (const input of [mistyped, `${keyValue} ${makeKeyValue(randomBytes)}`, '', 'x'.repeat(10_000)]) {
        const { code, stdout, stderr } = await home.run(['key', 'set', '--insecure-storage', '--server', server], { input });
        expect(code, stderr).to.equal(2);
        expect(stdout).to.equal('');
        if (input.length > 5) expect(stderr).not.to.contain(input.slice(0, 40));
      }
      expect(home.files()).to.deep.equal([]);
    });

    it('says what to do if there is no keychain, before asking for the key, and stores nothing', async function () {
      if (process.platform !== 'linux') skip(this, 'it is about the keychain of Linux');
      const home = new CliHome({ DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(new CliHome().directory, 'no-bus')}` });
      const { code, stdout, stderr } = await home.run(['key', 'set', '--server', server], { input: keyValue });
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr)
        .to.match(/Secret Service/)
        .and.contain(`run callkey key set --insecure-storage --server ${server} to store`)
        .and.match(/CALLKEY_API_KEY/);
      expect(home.files()).to.deep.equal([]);
    });

    it("can switch to a file if the keychain is no longer available, and says that the key in the keychain couldn't be deleted", async function () {
      if (process.platform !== 'linux') skip(this, 'it is about the keychain of Linux');
      const home = new CliHome({ DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(new CliHome().directory, 'no-bus')}` });
      mkdirSync(join(home.directory, '.config/callkey'), { recursive: true });
      const profiles = { default: { server, key: 'keychain' } };
      writeFileSync(join(home.directory, '.config/callkey/profiles.json'), JSON.stringify(profiles));
      const { code, stderr } = await home.run(['key', 'set', '--insecure-storage'], { input: keyValue });
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain("it's still there");
      expect(JSON.parse((await home.run(['key', 'status', '--json'])).stdout)).to.include({ stored: 'file', server });
    });

    it('with --insecure-storage, stores the key in one file with mode 0600 and nowhere else', async () => {
      const home = await homeWithFile();
      expect(statSync(join(home.directory, stored)).mode & 0o777).to.equal(0o600);
      const holding = home.files().filter(({ text }) => text.includes(keyValue));
      expect(holding.map(({ path }) => path)).to.deep.equal([stored]);
    });

    it("doesn't show the key that is typed at its prompt", async () => {
      const stdin = Object.assign(new PassThrough(), { isTTY: true });
      stdin.write(`${keyValue}\r`);
      const { stderr } = await new CliHome().runHere(['key', 'set', '--insecure-storage', '--server', server], undefined, { stdin });
      expect(stderr).to.equal('API key (input is hidden): \n');
    });

    it('needs a server, and asks for it before it asks for the key', async () => {
      const { code, stderr } = await new CliHome().run(['key', 'set', '--insecure-storage'], { input: keyValue });
      expect([code, stderr.includes('No server address specified')]).to.deep.equal([2, true]);
    });

    it('deletes the key of the old server when a key for another server is stored', async () => {
      const home = await homeWithFile();
      const other = makeKeyValue(randomBytes);
      await home.run(['key', 'set', '--insecure-storage', '--server', 'http://127.0.0.1:2'], { input: other });
      expect(home.files().filter(({ text }) => text.includes(keyValue))).to.deep.equal([]);
      expect(home.files().filter(({ text }) => text.includes(other))).to.have.length(1);
    });

    it('keeps all profiles and aliases if commands store several at the same time', async () => {
      const home = new CliHome();
      const names = Array.from({ length: 6 }, (_, n) => `p${n}`);
      const folders = xdgFolders({}, home.directory);
      const folder = folders.config;
      const context = { options: {}, environment: {}, folders, timing: systemTiming };
      await Promise.all([
        ...names.map((name) => changeProfiles(context, (profiles) => profiles.set(name, { server, key: 'file' }))),
        ...names.map((name) => setAlias(context, name, 'a'.repeat(40))),
      ]);
      expect(Object.keys(readJson(join(folder, 'profiles.json'))).toSorted()).to.deep.equal(names);
      expect(Object.keys(readJson(join(folder, 'campaigns.json'))['default'] ?? {}).toSorted()).to.deep.equal(names);
      expect(readdirSync(folder).toSorted()).to.deep.equal(['campaigns.json', 'profiles.json']);
    });

    it("uses the XDG folders if they're absolute", async () => {
      const home = new CliHome();
      const folder = (name: string) => join(home.directory, name);
      const environment = { XDG_CONFIG_HOME: folder('c'), XDG_DATA_HOME: 'relative', XDG_STATE_HOME: folder('s') };
      await home.run(['key', 'set', '--insecure-storage', '--server', server], { input: keyValue, environment });
      expect(
        home
          .files()
          .map(({ path }) => path)
          .toSorted(),
      ).to.deep.equal([stored, 'c/callkey/profiles.json']);
    });

    it('refuses a server to which the key would be sent unencrypted', async () => {
      const args = ['key', 'set', '--insecure-storage', '--server', 'http://user:secret@calls.example.com'];
      const { code, stderr } = await new CliHome().run(args, { input: keyValue });
      expect([code, stderr.includes('secret@')]).to.deep.equal([2, false]);
    });

    it("refuses a profile name that would leave its folder, or that couldn't be read back", async () => {
      for (const name of ['../x', '.', 'a/b', '', '__proto__']) {
        const { code } = await new CliHome().run(['key', 'set', '--insecure-storage', '--server', server, '--profile', name], {
          input: keyValue,
        });
        expect(code, name).to.equal(2);
      }
    });
  });

  describe('status', () => {
    it('shows the profile, the server and where the key is stored, but never the key', async () => {
      const home = await homeWithFile();
      const { code, stdout } = await home.run(['key', 'status', '--json']);
      expect(code).to.equal(0);
      expect(JSON.parse(stdout)).to.deep.equal({ profile: 'default', server, stored: 'file' });
      const text = await home.run(['key', 'status']);
      expect(text.stdout).to.contain(server).and.contain(stored);
      expect(stdout + text.stdout + text.stderr).not.to.contain(keyValue.slice(12, 30));
    });

    it('says that the environment overrides the stored key', async () => {
      const home = await homeWithFile();
      const { stdout } = await home.run(['key', 'status', '--json'], { environment: { CALLKEY_API_KEY: keyValue } });
      expect(JSON.parse(stdout)).to.include({ stored: 'environment' });
    });
  });

  describe('forget', () => {
    it('removes every trace of the key', async () => {
      const home = await homeWithFile();
      expect((await home.run(['key', 'forget'])).code).to.equal(0);
      expect(home.files().filter(({ text }) => text.includes(keyValue))).to.deep.equal([]);
      expect((await home.run(['key', 'forget'])).code).to.equal(6);
    });

    it('removes only the named profile', async () => {
      const home = await homeWithFile();
      await home.run(['key', 'set', '--insecure-storage', '--profile', 'staging', '--server', server], { input: keyValue });
      await home.run(['key', 'forget'], { environment: { CALLKEY_PROFILE: 'staging' } });
      expect(JSON.parse((await home.run(['key', 'status', '--json'])).stdout)).to.include({ stored: 'file', server });
      expect((await home.run(['key', 'status', '--profile', 'staging'])).code).to.equal(6);
    });
  });
});
