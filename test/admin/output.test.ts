import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { adminOn, bareEnvironment } from '../support/commands.ts';
import { freshDatabase, freshDirectory } from '../support/databases.ts';
import { skip } from '../support/suites.ts';
import { createTenants, insertKeys, openDirect } from '../support/tenants.ts';

/**
 * Turns a terminal red, clears it, renames its window, reverses text and ends a line, using C0, C1, bidirectional controls and separators.
 */
const hostile = '\u001b[31mred\u001b[2J\u001b]0;owned\u0007\u009b32m\u0085\u0008\u202egnp.exe\u2066\u200f\u061c\u2028';
const steering = /[^\P{Cc}\n]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

describe("admin's terminal output", () => {
  let database: string;
  const admin = (...args: string[]) => adminOn(database).admin(args);
  beforeEach(async () => {
    database = await freshDatabase('sqlite');
  });

  for (const [what, content] of [
    ["a file that isn't JSON", `{"${hostile}`],
    ['an unknown field', JSON.stringify({ [hostile]: 1 })],
    ['an unknown field of a partner', JSON.stringify({ partners: [{ externalId: 'p', name: 'P', [hostile]: 1 }] })],
    ['a forged line', JSON.stringify({ 'x\nerror: all is well': 1 })],
  ] as const) {
    it(`contains no control characters or forged lines from an import file: ${what}`, async () => {
      const file = join(freshDirectory(), 'import.json');
      writeFileSync(file, content);
      const { code, stdout, stderr } = await admin('import', file);
      expect([code, stdout, stderr.split('\n').length], stderr).to.deep.equal([2, '', 2]);
      expect(stderr).not.to.match(steering);
    });
  }

  it('contains no control characters from a file name, an argument or a command', async () => {
    await adminOn(database).json('migrate');
    for (const args of [['import', `/tmp/${hostile}`], [hostile], ['user', 'password', `${hostile}@x.y`], ['restore', `/tmp/${hostile}`]]) {
      const { code, stdout, stderr } = await admin(...args);
      expect(code === 0, JSON.stringify(stderr)).to.equal(false);
      expect(steering.test(stdout), JSON.stringify(stderr)).to.equal(false);
      expect(steering.test(stderr), JSON.stringify(stderr)).to.equal(false);
    }
  });

  it('contains no control characters from names in the database, either in tables or in sentences', async () => {
    const direct = await openDirect(database);
    const tenants = await createTenants(direct.ports);
    const { id } = tenants.users.staff;
    const name = `${hostile}\nforged  line`;
    await direct.storage.database.write('users').where({ id }).update({ name });
    await insertKeys(direct, tenants, ['key-1'], { name: hostile, creator_id: id });
    await direct.close();
    for (const args of [
      ['user', 'list'],
      ['key', 'list'],
      ['key', 'revoke', 'key-1'],
    ]) {
      const { code, stdout } = await admin(...args);
      expect(code, stdout).to.equal(0);
      expect(steering.test(stdout), stdout).to.equal(false);
      expect(/^forged/m.test(stdout) && args[1] === 'list', stdout).to.equal(false);
    }
  });

  it("goes to standard error, and the command exits with 1, if standard output can't be written", async function () {
    if (!existsSync('/dev/full')) skip(this, '/dev/full is missing');
    await adminOn(database).json('user', 'create', 'stan@example.com', '--name', 'Stan', '--type', 'staff');
    const run = (...args: string[]) => {
      const full = openSync('/dev/full', 'w');
      const env = { ...bareEnvironment, DATABASE_URL: database };
      const { status, stderr } = spawnSync(process.execPath, ['core/admin.ts', ...args], { env, stdio: ['ignore', full, 'pipe'] });
      closeSync(full);
      return { status, stderr: String(stderr) };
    };
    const reset = run('user', 'password', 'stan@example.com');
    expect(reset.status).to.equal(1);
    expect(reset.stderr).to.match(
      /^error: Couldn't write to standard output: the disk is full \(ENOSPC\)\..*\n[\s\S]*password: (\w{4}-){5}\w{4}\n/,
    );
    const { error } = JSON.parse(run('user', 'password', 'stan@example.com', '--json').stderr);
    expect(error.message).to.match(/The result is:\n\{.*"password":"/);
  });

  it('escapes control characters in JSON without losing any', async () => {
    const direct = await openDirect(database);
    const { users } = await createTenants(direct.ports);
    await direct.storage.database.write('users').where({ id: users.staff.id }).update({ name: hostile });
    await direct.close();
    const { stdout } = await admin('user', 'list', '--json');
    expect(stdout).not.to.match(steering);
    expect(JSON.parse(stdout).users.map(({ name }: { name: string }) => name)).to.include(hostile);
  });
});
