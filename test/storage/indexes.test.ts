import { mock } from 'node:test';
import { expect } from 'chai';
import { toDigest } from '../../core/domain/api-keys.ts';
import { placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { instant } from '../../core/domain/instant.ts';
import { activityStore } from '../../core/storage/audit/audit.ts';
import { planLifetime } from '../../core/storage/engine/postgres/postgres-connection.ts';
import { apiKeyStore } from '../../core/storage/keys/api-keys.ts';
import { doNotCallStore } from '../../core/storage/protection/do-not-call.ts';
import { type DatabaseKind, itOnPostgres, onEachDatabase, readPlans } from '../support/databases.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { insertKeys, somePhone, tenantsForEach, toCaller } from '../support/tenants.ts';

/** Selects the numbers from 10,001 to 30,000 as `i`. */
const numbers: Readonly<Record<DatabaseKind, string>> = {
  sqlite: 'WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i FROM n',
  postgres: 'SELECT i FROM generate_series(10001, 30000) AS i',
};

/** The lower bounds in the index of do-not-call numbers, on the first page and after a cursor. */
const bounds: Readonly<Record<DatabaseKind, { account: [first: string, next: string]; partner: [first: string, next: string] }>> = {
  sqlite: {
    account: ['do_not_call_numbers (scope_id=? AND phone>?', 'do_not_call_numbers (scope_id=? AND phone>?'],
    partner: ['do_not_call_of_partner_by_number (partner_id=? AND phone>?', '(partner_id=? AND (phone,id)>(?,?)'],
  },
  postgres: {
    account: ["(phone >= '+49'", "(phone > '+4929950'"],
    partner: ["(phone >= '+49'", "(ROW(phone, id) > ROW('+4929950'"],
  },
};

describe('an index', () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsForEach(kind);
    const lists = () => direct.storage.database.lanes.lists.read;

    if (kind === 'postgres') {
      itOnPostgres("has the activity for the filters, even if most of the user's events are in another scope", async () => {
        const { write, lanes } = direct.storage.database;
        await write.raw(
          `INSERT INTO audit_events (id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, partner_id, address)
           SELECT i, i, CASE WHEN i % 2 = 0 THEN 'busy' ELSE 'other' END, 'Someone', 'list.exported', 'list', 'calls', 'calls',
             CASE WHEN i % 2 = 0 THEN 'p2' ELSE 'p1' END, '192.0.2.1'
           FROM (${numbers[kind]}) AS numbers`,
        );
        await write.raw('ANALYZE audit_events');
        const filter = { at: { from: null, before: null }, actor: { id: 'busy' }, action: null, subject: null };
        const plans = await readPlans(kind, lists(), async () => {
          expect(await activityStore(lanes).list({ kind: 'partner', partnerId: 'p1' }, filter, null, 51)).to.deep.equal([]);
        });
        expect(plans.at(-1)).to.include('audit_events_of_partner_by_actor');
      });

      /** Returns the plans of the prepared statements with a text like this. Runs on the connection that has prepared them. */
      const readPreparedPlans = (text: string, mode: 'auto' | 'force_generic_plan') =>
        direct.storage.database.lanes.keys.write.transaction(async (trx) => {
          await trx.raw(`SET LOCAL plan_cache_mode = ${mode}`);
          const { rows } = await trx.raw('SELECT name FROM pg_prepared_statements WHERE statement LIKE ?', [text]);
          const plans: string[] = [];
          for (const { name } of rows) plans.push(JSON.stringify((await trx.raw(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"('[]')`)).rows));
          return plans;
        });

      itOnPostgres('has the keys by their digests for each statement, however many keys there are', async () => {
        const { campaign } = tenants;
        const ids = Array.from({ length: 1_000 }, (_, n) => `k${n}`);
        await insertKeys(direct, tenants, ids, { created_at: instant(0) });
        // Analyzes only the keys and not the few users, as autovacuum would.
        await direct.storage.database.write.raw('ANALYZE api_keys');
        const request = { ...toCaller(toDigest('k1')), campaignId: campaign.id, at: instant(0) };
        const { calls } = direct.ports.stores;
        await calls.findActive(request);
        await calls.authorize(request);
        await placeCall(direct.ports, request, campaign.id, { contact: { phone: somePhone() } });
        await calls.cancel(request, { contactId: 'none' });
        await calls.cancel(request, { requestId: 'none' });
        const plans = await readPreparedPlans('%api_keys%', 'force_generic_plan');
        expect(plans).to.have.length(6);
        for (const plan of plans) expect(plan).to.match(/"Relation Name":"api_keys"[^{}]*"Index Cond":"\(digest = /);
      });

      itOnPostgres('has the calls by their IDs, although the table was empty when the statements were first planned', async () => {
        const { write } = direct.storage.database.lanes.keys;
        const { id, keyValue } = await createKeyOn({ direct }, tenants.users.account, 'A key');
        const request = () => ({ ...toCaller(toDigest(keyValue)), campaignId: tenants.campaign.id, at: direct.ports.clock.now() });
        const cancel = () => direct.ports.stores.calls.cancel(request(), { requestId: 'none' });
        // PostgreSQL keeps the plan of the sixth execution.
        for (let n = 0; n < 8; n++) await cancel();
        await write.raw(
          `INSERT INTO calls (campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, placed_at, due_at)
           SELECT ?, ?, ?, 'queued', 'c' || n, 'r' || n, '+49', 0, 0 FROM generate_series(1, 20000) AS n`,
          [tenants.campaign.id, tenants.account.id, id],
        );
        const later = performance.now() + planLifetime;
        const now = mock.method(performance, 'now', () => later + 1);
        await cancel().finally(() => now.mock.restore());
        const plans = await readPreparedPlans('%request_id = %.request_id%', 'auto');
        expect(plans).to.have.length(2);
        for (const plan of plans)
          expect(plan).to.match(
            /"Index Name":"calls_campaign_id_request_id_key"[^{}]*"Index Cond":"\(\(campaign_id = [^{}]* AND \(request_id = /,
          );
      });
    }

    it('has the newest keys of an account and of a user, whose other keys are not read', async () => {
      const { write, lanes } = direct.storage.database;
      const { account, siblingAccount, partner, users } = tenants;
      const insert = (prefix: string, creatorId: string, accountId: string) =>
        write.raw(
          `INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, account_id, partner_id, created_at)
           SELECT ? || i, ? || i, 'K', ?, ?, ?, ?, i FROM (${numbers[kind]}) AS numbers WHERE i > 27000`,
          [prefix, prefix, creatorId, partner.id, accountId, partner.id],
        );
      await insert('of-account-', users.account.id, account.id);
      await insert('own-elsewhere-', users.tied.id, siblingAccount.id);
      await insert('own-', users.tied.id, account.id);
      await write.raw('ANALYZE');
      const visibility = { kind: 'account', accountId: account.id, userId: users.tied.id } as const;
      const plans = await readPlans(kind, lists(), async () => {
        const { apiKeys } = await apiKeyStore(lanes).list(visibility, 5);
        expect(apiKeys.map(({ id }) => id)).to.deep.equal([
          ...['own-elsewhere-30000', 'own-30000', 'of-account-30000'],
          ...['own-elsewhere-29999', 'own-29999'],
        ]);
      });
      // The other queries count the keys.
      const list = plans.find((plan) => /api_keys_by_account/.test(plan) && /api_keys_by_creator\b/.test(plan));
      expect(list)
        .to.be.a('string')
        .and.not.match(/Seq Scan on api_keys|SCAN k\b|MULTI-INDEX OR|BitmapOr/);
    });

    it('has a page of the numbers on a long do-not-call list that start with some digits', async () => {
      const { write, lanes } = direct.storage.database;
      const [accountId, partnerId] = [tenants.account.id, tenants.partner.id];
      await write.raw(
        `INSERT INTO do_not_call (id, scope_id, phone, account_id, partner_id, reason, source, created_at)
         SELECT 'n' || i, CASE WHEN i % 2 = 0 THEN ? ELSE ? END, '+49' || i, CASE WHEN i % 2 = 0 THEN ? END, ?, 'asked', 'admin', 0
         FROM (${numbers[kind]}) AS numbers`,
        [accountId, partnerId, accountId, partnerId],
      );
      await write.raw('ANALYZE do_not_call');
      for (const { access, expected, index } of [
        { access: { kind: 'account', accountId }, expected: [29_952, 29_954], index: 'do_not_call_numbers' },
        { access: { kind: 'partner', partnerId }, expected: [29_951, 29_952], index: 'do_not_call_of_partner_by_number' },
      ] as const)
        for (const cursor of [null, { phone: '+4929950', id: 'n29950' }]) {
          const [plan] = await readPlans(kind, lists(), async () => {
            const entries = await doNotCallStore(lanes).searchNumbers(access, '+49', cursor, 2);
            if (cursor) expect(entries.map(({ id }) => id)).to.deep.equal(expected.map((number) => `n${number}`));
          });
          expect(plan)
            .to.contain(bounds[kind][access.kind][cursor ? 1 : 0])
            .and.contain(index)
            .and.not.match(/Sort|ORDER BY/);
        }
    });
  });
});
