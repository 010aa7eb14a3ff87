import { randomBytes, randomUUID } from 'node:crypto';
import { AsyncEntry } from '@napi-rs/keyring';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { CliHome } from '../support/cli.ts';
import { whyNoSecretService } from '../support/commands.ts';

const reason = await whyNoSecretService();

describe("callkey key, with the system's keychain", () => {
  if (reason !== undefined) {
    it.skip(`isn't tested: ${reason}`);
    return;
  }
  const profile = `test-${randomUUID()}`;
  const keyValue = makeKeyValue(randomBytes);
  const { DBUS_SESSION_BUS_ADDRESS = '' } = process.env;
  const home = new CliHome({ DBUS_SESSION_BUS_ADDRESS, CALLKEY_PROFILE: profile });
  const inKeychain = () => new AsyncEntry('callkey', `${profile}@http.127.0.0.1:1`, { linux: { store: 'secret-service' } }).getPassword();
  const run = (args: string[], input = '') => home.start(args, { input }).ended;
  const set = (...more: string[]) => run(['key', 'set', '--server', 'http://127.0.0.1:1', ...more], keyValue);

  it('stores the key in the keychain, but not in a file', async () => {
    const { code, stderr } = await set();
    expect(code, stderr).to.equal(0);
    expect(await inKeychain()).to.equal(keyValue);
    expect(home.files().filter(({ text }) => text.includes(keyValue))).to.deep.equal([]);
    expect(JSON.parse((await run(['key', 'status', '--json'])).stdout)).to.include({ profile, stored: 'keychain' });
  });

  it('stores a key that callkey call place can read', async () => {
    expect((await run(['call', 'place', 'a-campaign', '--phone', '+493012345678'])).code).to.equal(7);
  });

  it('never sends the stored key to another server, and replaces it when a key for that server is stored', async () => {
    const { code, stderr } = await run(['call', 'place', 'a-campaign', '--phone', '+493012345678', '--server', 'http://127.0.0.1:2']);
    expect([code, stderr.includes("isn't sent to http://127.0.0.1:2")]).to.deep.equal([2, true]);
    expect((await run(['key', 'set', '--server', 'http://127.0.0.1:2'], keyValue)).code).to.equal(0);
    expect(await inKeychain()).to.equal(null);
    expect((await set()).code).to.equal(0);
    expect(await inKeychain()).to.equal(keyValue);
  });

  it("doesn't leave a second copy when the key is stored again", async () => {
    expect((await set('--insecure-storage')).code).to.equal(0);
    expect(await inKeychain()).to.equal(null);
    expect((await set()).code).to.equal(0);
    expect(home.files().filter(({ text }) => text.includes(keyValue))).to.deep.equal([]);
  });

  it('removes the key', async () => {
    expect((await run(['key', 'forget'])).code).to.equal(0);
    expect(await inKeychain()).to.equal(null);
    expect((await run(['key', 'status'])).code).to.equal(6);
  });
});
