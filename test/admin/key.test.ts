import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, describeAdminWithTenants, insertKeys, onDemand, placeCall, signIn, somePhone } from '../support/tenants.ts';

describeAdminWithTenants('admin key', ({ admin, json, kind, direct, tenants }) => {
  it("lists and revokes any user's keys, and cancels their queued calls with --cancel-queued", async () => {
    const { campaign, users } = tenants;
    const core = await startCoreHere(direct.database);
    const { id, keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'CRM');
    await placeCall(core.url, campaign.id, keyValue, { requestId: 'r1', contact: { phone: somePhone() } });
    const { apiKeys, total } = await json('key', 'list');
    expect([total, apiKeys[0].name]).to.deep.equal([1, 'CRM']);
    expect(apiKeys[0].owner).to.deep.equal({ id: users.account.id, name: 'Ada Account', email: 'ada@example.com' });
    expect(JSON.stringify(apiKeys)).not.to.contain('svc_sk_live_');
    await json('key', 'revoke', id, '--cancel-queued-calls');
    expect((await ask('DELETE', `${onDemand(core.url, campaign.id)}/by-request-id/r1`, { key: keyValue })).status).to.equal(401);
    await core.close();
    expect(await direct.storage.database.read('calls').pluck('state')).to.deep.equal(['cancelled']);
    expect((await admin(['key', 'revoke', id])).code).to.equal(3);
  });

  it('limits a key, shows its limits in the list, and revokes it with a reason, all of which is audited', async () => {
    const { id } = await createKeyOn({ direct }, tenants.users.partner, 'CRM');
    const { apiKey } = await json('key', 'limit', id, '--addresses', '10.0.0.0/8, 2001:DB8::1', '--calls-per-day', '1000');
    expect([apiKey.addresses, apiKey.callsPerDay]).to.deep.equal([['10.0.0.0/8', '2001:db8::1/128'], 1000]);
    expect((await admin(['key', 'list'])).stdout).to.include('only from 10.0.0.0/8, 2001:db8::1/128;');
    expect((await admin(['key', 'limit', id, '--addresses', 'any'])).stdout).to.include(
      'API key CRM is now limited: at most 1,000 calls per day.',
    );
    expect((await admin(['key', 'limit', 'nope', '--addresses', 'any'])).stderr).to.equal("error: This API key doesn't exist.\n");
    for (const [wrong, message] of [
      [['--addresses', '10.0.0.0/8,10.0.0.7/8'], '--addresses 10.0.0.7/8: The address has bits set beyond its prefix length.'],
      [['--calls-per-day', '1e3'], '--calls-per-day: Must be a whole number.'],
      [[], 'pass --addresses, --calls-per-day or both'],
    ] as const) {
      const { code, stderr } = await admin(['key', 'limit', id, ...wrong]);
      expect([code !== 0, stderr]).to.satisfy(([failed, text]: [boolean, string]) => failed && text.includes(message), stderr);
    }
    expect((await admin(['key', 'revoke', id, '--reason', 'other'])).stderr).to.include('explain the reason with --note');
    for (const note of ['two\nlines', 'x'.repeat(201), ' '])
      expect((await admin(['key', 'revoke', id, '--note', note])).stderr).to.include('--note');
    await json('key', 'revoke', id, '--reason', 'leaked', '--note', 'on GitHub');
    const details: (string | null)[] = await direct.storage.database
      .read('audit_events')
      .whereNotNull('detail')
      .orderBy('id')
      .pluck('detail');
    expect(details).to.deep.equal([
      'only from 10.0.0.0/8, 2001:db8::1/128; at most 1,000 calls per day',
      'at most 1,000 calls per day',
      'leaked: on GitHub',
    ]);
  });

  it("filters keys by name and owner, and lists the newest 500 keys, or all keys on request, with their owners' readable addresses", async () => {
    const ids = Array.from({ length: 1_010 }, (_, n) => `key-${String(n).padStart(4, '0')}`);
    await insertKeys(direct, tenants, ids.slice(0, 1_003), { creator_id: tenants.users.partner.id, account_id: null });
    await insertKeys(direct, tenants, ids.slice(1_003), {
      creator_id: tenants.users.tied.id,
      account_id: null,
      created_at: instant(2_000),
    });
    const { write } = direct.storage.database;
    await write('api_keys').whereIn('id', ['key-0007', 'key-1007']).update({ name: 'Das Café' });
    await write('users').where({ id: tenants.users.partner.id }).update({ email: 'pat@xn--mnchen-3ya.example' });
    const list = async (...args: string[]) => {
      const { apiKeys, total } = await json('key', 'list', ...args);
      return [apiKeys.length, total, apiKeys[0]?.id];
    };
    expect(await list()).to.deep.equal([500, 1_010, 'key-1009']);
    expect(await list('--all')).to.deep.equal([1_010, 1_010, 'key-1009']);
    expect(await list('--owner', 'tia@example.com')).to.deep.equal([7, 7, 'key-1009']);
    expect(await list('--search', 'CAFE')).to.deep.equal([2, 2, 'key-1007']);
    expect(await list('--search', 'key')).to.deep.equal([500, 1_008, 'key-1009']);
    const found = await admin(['key', 'list', '--search', 'key']);
    expect(found.stdout).to.contain('Showing the newest 500 of 1008. To list them all, add --all.\n');
    const { apiKeys } = await json('key', 'list', '--search', 'cafe', '--owner', 'pat@münchen.example');
    expect(apiKeys.map(({ id, owner }: { id: string; owner: { email: string } }) => [id, owner.email])).to.deep.equal([
      ['key-0007', 'pat@münchen.example'],
    ]);
    expect(await list('--search', 'nothing')).to.deep.equal([0, 0, undefined]);
    expect((await admin(['key', 'list', '--owner', 'nobody@example.com'])).code).to.equal(3);
  });

  describe('revoke --value-from-stdin', () => {
    const core = openOnce(() => startCoreHere(direct.database));
    let key: { id: string; keyValue: string };
    /** Undoes a test's changes of the schema. */
    let undo: string[] = [];

    beforeEach(async () => {
      undo = [];
      key = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'Leaked');
    });
    afterEach(async () => {
      for (const sql of undo) await direct.storage.database.write.raw(sql);
    });

    const revoke = (input: string, ...more: string[]) => admin(['key', 'revoke', '--value-from-stdin', ...more], input);

    it('revokes the key with this value, and names the key', async () => {
      const { code, stdout } = await revoke(`${key.keyValue}\n`);
      expect([code, stdout]).to.deep.equal([0, 'Revoked API key Leaked, owned by Ada Account.\n']);
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(401);
      expect((await revoke(key.keyValue)).code).to.equal(3);
    });

    it('revokes the key whose value is the only argument', async () => {
      expect((await admin(['key', 'revoke', key.keyValue])).stdout).to.equal('Revoked API key Leaked, owned by Ada Account.\n');
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(401);
    });

    it('refuses a mistyped value without repeating it', async () => {
      const mistyped = `${key.keyValue.slice(0, -1)}-`;
      const { code, stdout, stderr } = await revoke(mistyped);
      expect(code).to.equal(2);
      expect(stderr).to.contain("isn't an API key");
      expect(stdout + stderr).not.to.contain(mistyped.slice(0, -1));
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(403);
    });

    it("revokes several keys by ID or value, names each key, and continues if a key doesn't exist", async () => {
      const cookie = await signIn(core.url, 'ada@example.com');
      const [second, third] = [await createKey(core.url, cookie, 'Second'), await createKey(core.url, cookie, 'Third')];
      const file = join(freshDirectory(), 'leaked.txt');
      writeFileSync(file, `${key.keyValue}\r\n\nno-such-id\n${key.keyValue.slice(0, -1)}-\n${second.id}\n${key.id}\n${key.keyValue}\n`);
      const { code, stdout } = await admin(['key', 'revoke', '--from', file, '--json']);
      const { apiKeys, failed } = JSON.parse(stdout);
      expect([code, apiKeys.map(({ name }: { name: string }) => name)]).to.deep.equal([1, ['Leaked', 'Second']]);
      expect(failed.map(({ place }: { place: string }) => place)).to.deep.equal(['line 3', 'line 4']);
      expect(stdout).not.to.contain('svc_sk_live_0').and.not.to.contain(key.keyValue.slice(0, 30));
      const fourth = await createKey(core.url, cookie, 'Fourth');
      const both = await admin(['key', 'revoke', third.id, fourth.id]);
      expect([both.code, both.stdout]).to.deep.equal([
        0,
        `Revoked API key Third (${third.id}), owned by Ada Account.\nRevoked API key Fourth (${fourth.id}), owned by Ada Account.\nRevoked 2 API keys.\n`,
      ]);
      for (const { keyValue } of [key, second, third, fourth]) expect((await placeCall(core.url, 'some', keyValue)).status).to.equal(401);
      expect((await admin(['key', 'revoke', '--from', '-'], third.keyValue)).code).to.equal(1);
    });

    it('reads a list of keys that PowerShell has saved as UTF-16', async () => {
      const file = join(freshDirectory(), 'leaked.txt');
      writeFileSync(file, `\ufeff${key.keyValue}\r\n`, 'utf16le');
      expect((await admin(['key', 'revoke', '--from', file])).stdout).to.contain('Revoked 1 API key.');
    });

    it('says which keys are revoked if only cancelling their calls failed', async () => {
      await placeCall(core.url, tenants.campaign.id, key.keyValue);
      const { id } = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'Second');
      const refuseCancelling =
        kind === 'sqlite'
          ? `CREATE TRIGGER refuse BEFORE UPDATE ON calls WHEN NEW.state = 'cancelled' BEGIN SELECT RAISE(ABORT, 'no'); END`
          : `ALTER TABLE calls ADD CONSTRAINT refuse CHECK (state <> 'cancelled')`;
      await direct.storage.database.write.raw(refuseCancelling);
      undo = [kind === 'sqlite' ? 'DROP TRIGGER refuse' : 'ALTER TABLE calls DROP CONSTRAINT refuse'];
      const args = ['key', 'revoke', key.id, id, 'no-such-id', '--cancel-queued-calls'];
      const { code, stdout } = await admin(args);
      expect([code, stdout.split('\n')]).to.deep.equal([
        1,
        [
          `Revoked API key Leaked (${key.id}), owned by Ada Account.`,
          `Revoked API key Second (${id}), owned by Ada Account.`,
          "NOT REVOKED  no-such-id: This API key doesn't exist.",
          'Revoked 2 API keys. Not revoked: 1.',
          "Couldn't cancel all queued calls of these keys yet. A core retries every minute.",
          '',
        ],
      ]);
    });

    it('revokes all keys before it cancels their queued calls', async () => {
      const second = await createKey(core.url, await signIn(core.url, 'ada@example.com'), 'Second');
      for (const { keyValue } of [key, second]) await placeCall(core.url, tenants.campaign.id, keyValue);
      const { write } = direct.storage.database;
      const tooEarly = `SELECT 1 FROM api_keys WHERE id = '${second.id}'`;
      if (kind === 'sqlite') {
        await write.raw(`CREATE TRIGGER early BEFORE UPDATE ON calls WHEN EXISTS (${tooEarly}) BEGIN SELECT RAISE(ABORT, 'early'); END`);
      } else {
        await write.raw(`CREATE FUNCTION early() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN IF EXISTS (${tooEarly}) THEN RAISE EXCEPTION 'early'; END IF; RETURN NEW; END $$`);
        await write.raw('CREATE TRIGGER early BEFORE UPDATE ON calls FOR EACH ROW EXECUTE FUNCTION early()');
      }
      undo = kind === 'sqlite' ? ['DROP TRIGGER early'] : ['DROP TRIGGER early ON calls', 'DROP FUNCTION early'];
      const { code, stdout } = await admin(['key', 'revoke', key.id, second.id, '--cancel-queued-calls']);
      expect(code, stdout).to.equal(0);
      expect(await write('calls').pluck('state')).to.deep.equal(['cancelled', 'cancelled']);
    });

    it('requires either an ID or a value, but not both', async () => {
      expect((await revoke(key.keyValue, key.id)).code).to.equal(2);
      expect((await admin(['key', 'revoke'])).code).to.equal(2);
      expect((await placeCall(core.url, 'some', key.keyValue)).status).to.equal(403);
    });
  });
});
