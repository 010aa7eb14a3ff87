import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { readServerAddress } from '#contract/server-address.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { checkedKey, openKeyStore, readEnvironmentKey, readKey } from '../../cli/connection/keys.ts';
import type { Settings } from '../../cli/connection/settings.ts';
import type { Folders } from '../../cli/state/folders.ts';
import { freshFolders } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';
import { openFilesIn } from '../support/hooks.ts';
import { skip } from '../support/suites.ts';

const keyValue = makeKeyValue(randomBytes);
const server = 'https://calls.example.com';
const rejection = (doing: Promise<unknown>) =>
  doing.then(
    () => 'nothing',
    (error) => (error instanceof CallkeyError ? `${error.kind}: ${error.message}` : String(error)),
  );

describe("a profile's key file", () => {
  let folders: Folders;
  let path: string;
  beforeEach(function () {
    if (process.platform === 'win32') skip(this, "Windows doesn't have these permissions");
    folders = freshFolders();
    path = join(folders.data, 'keys', 'work@https.calls.example.com');
  });
  const open = () => openKeyStore('file', 'work', server, folders);
  const write = async () => (await open()).write(keyValue);
  const set = `callkey key set --insecure-storage --profile work --server ${server}`;
  const refused = (reason: string, advice = `Delete it and run ${set} to store the key again.`) =>
    `failed: Refused to use the key file ${path}: ${reason}. ${advice}`;

  it('returns the stored key, reports its path, and has mode 0600 in a folder with mode 0700', async () => {
    await write();
    expect(await (await open()).read()).to.equal(keyValue);
    expect([readFileSync(path, 'utf8'), (await open()).where]).to.deep.equal([`${keyValue}\n`, `the file ${path}`]);
    expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).to.deep.equal([0o600, 0o700]);
    expect(readdirSync(dirname(path))).to.deep.equal(['work@https.calls.example.com']);
  });

  it('is empty until a key is stored, is replaced completely, and is removed when the key is deleted', async () => {
    const store = await open();
    expect([await store.read(), await store.delete()]).to.deep.equal([undefined, false]);
    await store.write(`${keyValue}, the longer one`);
    await store.write(keyValue);
    expect([await store.read(), await store.delete(), await store.read()]).to.deep.equal([keyValue, true, undefined]);
  });

  for (const mode of [0o640, 0o620, 0o604, 0o602, 0o601]) {
    it(`is refused with mode ${mode.toString(8)}`, async () => {
      await write();
      chmodSync(path, mode);
      const advice = `If someone may have done so, revoke the key. Otherwise, run chmod 600 ${path}`;
      expect(await rejection((await open()).read())).to.equal(refused('others can read or write it', advice));
    });
  }

  it('is refused if it has a second hard link', async () => {
    await write();
    linkSync(path, `${path}-too`);
    expect(await rejection((await open()).read())).to.equal(refused("it's a link or not a regular file"));
  });

  it('is neither read nor written through a symbolic link', async () => {
    await write();
    const elsewhere = `${path}-elsewhere`;
    writeFileSync(elsewhere, 'untouched', { mode: 0o600 });
    rmSync(path);
    symlinkSync(elsewhere, path);
    expect(await rejection((await open()).read())).to.equal(refused("it's a symbolic link"));
    expect(await rejection(write())).to.equal(refused("it's a link or not a regular file"));
    expect(readFileSync(elsewhere, 'utf8')).to.equal('untouched');
  });

  it("is refused if it's a folder or a pipe, which would block the read", async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    expect(await rejection((await open()).read())).to.equal(refused("it's a link or not a regular file"));
    rmSync(path, { recursive: true });
    execFileSync('mkfifo', ['-m', '600', path]);
    expect(await rejection((await open()).read())).to.equal(refused("it's a link or not a regular file"));
  });

  it('is refused if another user owns it (needs root)', async function () {
    if (process.getuid?.() !== 0) skip(this, 'requires root');
    await write();
    chownSync(path, 1, 1);
    expect(await rejection((await open()).read())).to.equal(refused('it belongs to another user'));
  });

  it("is reported with the reason if it can't be read", async () => {
    mkdirSync(folders.data, { recursive: true });
    writeFileSync(join(folders.data, 'keys'), '');
    const message = `failed: Couldn't read the key file ${path} (ENOTDIR). Check its permissions, or set CALLKEY_API_KEY.`;
    expect(await rejection((await open()).read())).to.equal(message);
    const thrown: unknown = await (await open()).read().catch((error: unknown) => error);
    expect(thrown).to.have.nested.property('cause.code', 'ENOTDIR');
  });

  it('is closed after reading', async () => {
    await write();
    await (await open()).read();
    expect(openFilesIn(folders.data)).to.deep.equal([]);
  });
});

describe("a profile's key", () => {
  const settings = (profile?: Settings['profile']): Settings => ({ profileName: 'work', profile, server });
  const stored = settings({ server, key: 'file' });
  let folders: Folders;
  beforeEach(() => {
    folders = freshFolders();
  });
  const notAKey =
    "isn't an API key: a key is svc_sk_live_ followed by 49 letters and digits, which end in a checksum. Copy the whole key again.";

  it("comes from the environment variable if it's set, trimmed, even if another key is stored", async () => {
    expect(await readKey(stored, { CALLKEY_API_KEY: ` ${keyValue}\n` }, folders)).to.include({ keyValue });
  });

  it('comes from the file that the environment variable names, trimmed', async () => {
    const path = join(freshDirectory(), 'key');
    writeFileSync(path, `\n${keyValue} \n`);
    const overrides = ', which overrides any stored key';
    expect(await readKey(stored, { CALLKEY_API_KEY: '', CALLKEY_API_KEY_FILE: path }, folders)).to.deep.equal({
      ...{ keyValue, where: `in the file ${path} (CALLKEY_API_KEY_FILE)${overrides}`, variable: 'CALLKEY_API_KEY_FILE' },
    });
    expect(await readEnvironmentKey({ CALLKEY_API_KEY: keyValue })).to.deep.equal({
      ...{ keyValue, where: `in CALLKEY_API_KEY${overrides}`, variable: 'CALLKEY_API_KEY' },
    });
    writeFileSync(path, 'nonsense');
    expect(await rejection(readEnvironmentKey({ CALLKEY_API_KEY_FILE: path }))).to.equal(`usage: The text in ${path} ${notAKey}`);
  });

  it("can't come from both an environment variable and a key file", async () => {
    const both = { CALLKEY_API_KEY: keyValue, CALLKEY_API_KEY_FILE: '/key' };
    expect(await rejection(readEnvironmentKey(both))).to.equal(
      'usage: CALLKEY_API_KEY and CALLKEY_API_KEY_FILE are both set. Unset one of them.',
    );
  });

  it("can't come from a missing file that CALLKEY_API_KEY_FILE names, and the error says what to check", async () => {
    const path = join(freshDirectory(), 'none');
    expect(await rejection(readEnvironmentKey({ CALLKEY_API_KEY_FILE: path }))).to.equal(
      `usage: Couldn't read ${path}, the file in CALLKEY_API_KEY_FILE (ENOENT). Check its name and permissions.`,
    );
  });

  it('is the stored key if the environment variable is missing or empty', async () => {
    await (await openKeyStore('file', 'work', server, folders)).write(keyValue);
    for (const environment of [{}, { CALLKEY_API_KEY: '' }, { CALLKEY_API_KEY_FILE: '' }])
      expect(await readKey(stored, environment, folders)).to.include({ keyValue });
  });

  for (const other of [
    'https://calls.example.com:8443',
    'https://calls.example.com.',
    'https://calls.example.com.evil.example',
    'https://evil.example/calls.example.com',
    'https://evil.example',
    'https://example.com',
    'https://sub.calls.example.com',
    'https://calls-example.com',
    'https://127.0.0.1',
    'http://127.0.0.1',
    'http://localhost:443',
    'https://ｃalls.example.com.evil.example',
    'https://сalls.example.com',
  ]) {
    it(`isn't used for another server: ${other}`, async () => {
      await (await openKeyStore('file', 'work', server, folders)).write(keyValue);
      const read = readServerAddress(other);
      expect(read.ok).to.equal(true);
      const settings: Settings = { profileName: 'work', profile: { server, key: 'file' }, server: read.ok ? read.address : null };
      expect(await rejection(readKey(settings, {}, folders)))
        .to.match(/^usage: The key for the profile work was stored for https:\/\/calls\.example\.com, so it isn't sent to /)
        .and.match(/callkey key set --profile NAME --server .*, or set CALLKEY_API_KEY\.$/);
      expect(await readKey(settings, { CALLKEY_API_KEY: keyValue }, folders)).to.include({ keyValue });
    });
  }

  for (const same of [
    'https://CALLS.example.com',
    'HTTPS://calls.example.com:443/',
    'https://calls.example.com/base',
    'https://ｃalls.example.com',
  ]) {
    it(`is used for the same server, written as ${same}`, async () => {
      await (await openKeyStore('file', 'work', server, folders)).write(keyValue);
      const read = readServerAddress(same);
      expect(await readKey({ ...stored, server: read.ok ? read.address : null }, {}, folders)).to.include({ keyValue });
    });
  }

  it("is still the old server's key if `key set` is stopped before the profile names the new server", async () => {
    await (await openKeyStore('file', 'work', server, folders)).write(keyValue);
    await (await openKeyStore('file', 'work', 'https://new.example', folders)).write(makeKeyValue(randomBytes));
    expect(await readKey(stored, {}, folders)).to.include({ keyValue });
  });

  it("is stored in the system's keychain, unless the user chose a file", async () => {
    const where = await openKeyStore('keychain', 'work', server, folders).then(
      (store) => store.where,
      (error) => error.message,
    );
    expect(where).to.contain("the system's keychain (");
  });

  it("can't be read if none was ever stored, and the error says how to store one", async () => {
    const advice = `Run callkey key set --profile work --server ${server} to store one, or set CALLKEY_API_KEY or CALLKEY_API_KEY_FILE.`;
    expect(await rejection(readKey(settings(), {}, folders))).to.equal(`usage: No key is stored for the profile work. ${advice}`);
    expect(await rejection(readKey({ ...settings(), profileName: 'default' }, {}, folders))).to.contain(
      `Run callkey key set --server ${server} to store one`,
    );
  });

  it("can't be read if its file is missing, and the error says how to store it again", async () => {
    const file = join(folders.data, 'keys', 'work@https.calls.example.com');
    expect(await rejection(readKey(stored, {}, folders))).to.equal(
      `usage: The key for the profile work is no longer in the file ${file}. Run callkey key set --profile work to store it again.`,
    );
  });

  it("is validated wherever it comes from, and isn't shown in the error", async () => {
    expect(await rejection(readKey(stored, { CALLKEY_API_KEY: `${keyValue}x` }, folders))).to.equal(`usage: CALLKEY_API_KEY ${notAKey}`);
    const store = await openKeyStore('file', 'work', server, folders);
    await store.write('nonsense');
    expect(await rejection(readKey(stored, {}, folders))).to.equal(`usage: The text in ${store.where} ${notAKey}`);
    expect(checkedKey(keyValue, 'It')).to.equal(keyValue);
  });
});
