import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { recordRefusals } from '../../core/server/recorded-refusals.ts';
import { createLog } from '../../core/server/start/log.ts';
import { type LogLine, recordLog, startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { createKey, databaseWithTenants, openDirect, placeCall, signIn } from '../support/tenants.ts';

const from = (address: string) => ({ 'X-Forwarded-For': address });

/** Sends requests of every kind that a core refuses, and closes it. @returns its log, the events about sign-ins, and what was sent */
async function refuseRequests() {
  const { database, tenants } = await databaseWithTenants('sqlite');
  await using direct = await openDirect(database);
  const core = await startCoreHere(database, { environment: { TRUSTED_PROXIES: '127.0.0.1' } });
  const cookie = await signIn(core.url, 'ada@example.com');
  const { id, keyValue: revoked } = await createKey(core.url, cookie);
  await placeCall(core.url, tenants.campaign.id, revoked);
  await ask('DELETE', `${core.url}/console/api-keys/${id}`, { cookie });
  const unknown = makeKeyValue(randomBytes);
  const place = (address: string, key?: string) =>
    ask('POST', `${core.url}/api/v1/campaigns/x/contacts/on-demand`, { ...(key ? { key } : {}), headers: from(address), body: {} });
  // The core has accepted the revoked key before.
  for (const key of [undefined, 'nonsense', unknown, revoked]) await place('203.0.113.7', key);
  await place('2001:db8::7', unknown);
  const tryIn = (email: string, address: string) =>
    ask('POST', `${core.url}/console/session`, { body: { email, password: 'canary-password' }, headers: from(address) });
  for (let n = 0; n < 11; n++) await tryIn('ada@example.com', '203.0.113.8');
  await tryIn('canary-nobody@example.com', '203.0.113.9');
  // Neither request is a sign-in or has a key.
  await ask('GET', `${core.url}/nothing`, { headers: from('203.0.113.10') });
  await ask('GET', `${core.url}/console/session`, { headers: from('203.0.113.10') });
  await core.close();
  const events = await direct.storage.database.read('audit_events').where({ action: 'session.refused' });
  return { log: core.log, events, tenants, keys: [unknown, revoked] };
}

describe('refused requests', () => {
  describe('of all kinds', () => {
    let refused: Awaited<ReturnType<typeof refuseRequests>>;
    before(async () => {
      refused = await refuseRequests();
    });

    it('are logged by address with a count', () => {
      // The core logs the counts every ten seconds, so an address has two lines if that was in the middle of its requests.
      const counted: Record<string, number> = {};
      for (const { msg, address, count } of refused.log) {
        if (address !== undefined) counted[`${msg} ${address}`] = (counted[`${msg} ${address}`] ?? 0) + Number(count);
      }
      expect(counted).to.deep.equal({
        'API keys refused 203.0.113.7': 4,
        'API keys refused 2001:db8::7': 1,
        'sign-ins refused 203.0.113.8': 10,
        'sign-ins refused 203.0.113.9': 1,
        'sign-ins throttled 203.0.113.8': 1,
      });
    });

    it('are logged without keys, emails or passwords', () => {
      for (const secret of ['canary', 'ada@', ...refused.keys.map((key) => key.slice(12, 40))])
        expect(JSON.stringify(refused.log)).not.to.contain(secret);
    });

    it('are recorded as audit events for each user', () => {
      const { account, users } = refused.tenants;
      const seen = refused.events.map(({ actor_name, subject_id, account_id, address }) => [actor_name, subject_id, account_id, address]);
      expect(new Set(seen.map(String))).to.deep.equal(new Set([['Ada Account', users.account.id, account.id, '203.0.113.8'].join()]));
    });
  });

  it('cause one log line about TRUSTED_PROXIES if forwarding headers come from an untrusted address', async () => {
    const { database } = await databaseWithTenants('sqlite');
    const core = await startCoreHere(database, { environment: { TRUSTED_PROXIES: '192.0.2.1' } });
    for (let n = 0; n < 3; n++) await ask('GET', `${core.url}/console/session`, { headers: from(`203.0.113.${n}`) });
    await ask('GET', `${core.url}/console/session`);
    await core.close();
    const lines = core.log.filter(({ msg }) => String(msg).includes('TRUSTED_PROXIES'));
    expect(lines.map((line) => [line['level'], line['from'], line['requests']])).to.deep.equal([['warn', ['127.0.0.1'], 3]]);
  });

  /** Refuses a key once for each of these addresses. @returns the log lines */
  async function findLines(addresses: readonly string[]): Promise<LogLine[]> {
    const { log, lines } = recordLog();
    const direct = await openDirect(await freshDatabase('sqlite'));
    const refusals = recordRefusals(direct.ports, createLog('info', lines));
    for (const address of addresses) refusals.onKeyRefused(address);
    await refusals.close();
    await direct.close();
    return log;
  }

  it('never fill the log or memory: the addresses with the most refusals have a line each, and the others share a line', async () => {
    const addresses = Array.from({ length: 20_000 }, (_, n) => `10.${n >> 14}.${(n >> 7) & 127}.${n & 127}`);
    const log = await findLines([...addresses, ...addresses.slice(0, 3), '10.0.0.0']);
    expect(log).to.have.length(101);
    expect(log.slice(0, 3).map(({ address, count }) => [address, count])).to.deep.equal([
      ['10.0.0.0', 3],
      ['10.0.0.1', 2],
      ['10.0.0.2', 2],
    ]);
    expect(log.at(-1)).to.include({ msg: 'API keys refused, from other addresses', addresses: 9_900, count: 19_900 });
  });

  it('are logged without an address if a proxy forwards an invalid one', async () => {
    expect((await findLines(['"}\n{"forged'])).map(({ address, count }) => [address, count])).to.deep.equal([['unknown', 1]]);
  });
});
