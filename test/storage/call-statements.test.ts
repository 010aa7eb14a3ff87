import { mock } from 'node:test';
import { expect } from 'chai';
import { createApiKey, revokeApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { instant } from '../../core/domain/instant.ts';
import type { User } from '../../core/domain/model.ts';
import { planLifetime } from '../../core/storage/engine/postgres/postgres-connection.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase, itOnPostgres, onEachDatabase } from '../support/databases.ts';
import { openOnce } from '../support/suites.ts';
import { createTenants, databaseWithTenants, openDirect, somePhone, type Tenants, toCaller } from '../support/tenants.ts';

describe('requests that share a statement', () => {
  onEachDatabase((kind) => {
    let tenants: Tenants;

    const direct = openOnce(async () => openDirect(await freshDatabase(kind), fakeClock()));
    before(async () => {
      tenants = await createTenants(direct.ports);
    });

    const toViewer = (user: User) => ({ ...user, tenancy: null });
    const createKey = async (user: User) => {
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' } as const;
      const { apiKey, keyValue } = await createApiKey(direct.ports, { viewer: toViewer(user), actor: operator.actor }, input);
      return { id: apiKey.id, digest: toDigest(keyValue) };
    };
    const request = (digest: Awaited<ReturnType<typeof createKey>>['digest']) => ({
      ...toCaller(digest),
      campaignId: tenants.campaign.id,
      at: direct.ports.clock.now(),
    });

    it('to cancel the same call each get the result for their own key', async () => {
      const { account, teammate, other } = tenants.users;
      const [placing, colleague, revoked, elsewhere] = await Promise.all([account, teammate, account, other].map(createKey));
      if (!placing || !colleague || !revoked || !elsewhere) throw new Error('A key is missing.');
      const input = { contact: { phone: somePhone() } };
      const { contactId } = await placeCall(direct.ports, toCaller(placing.digest), tenants.campaign.id, input);
      await revokeApiKey(direct.ports, { viewer: toViewer(account), actor: operator.actor }, revoked.id, false);
      const { cancel } = direct.ports.stores.calls;
      const keys = [elsewhere, placing, revoked, colleague, elsewhere];
      const kinds = (await Promise.all(keys.map(({ digest }) => cancel(request(digest), { contactId })))).map((answer) => answer.kind);
      expect(kinds).to.deep.equal(['campaign-refused', 'cancelled', 'unauthorized', 'cancelled', 'campaign-refused']);
    });
  });
});

describe('storage on PostgreSQL', () => {
  itOnPostgres('finds keys by their digests with an index in each statement, however many keys there are', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const direct = await openDirect(database, fakeClock());
    const { account, partner, users } = tenants;
    const of = { creator_id: users.account.id, creator_partner_id: partner.id, account_id: account.id, partner_id: partner.id };
    const row = (n: number) => ({ ...of, id: `k${n}`, digest: toDigest(`k${n}`), name: 'x', created_at: instant(0) });
    await direct.storage.database.write.batchInsert(
      'api_keys',
      Array.from({ length: 1_000 }, (_, n) => row(n)),
    );
    // Analyzes only the keys and not the few users, as autovacuum would.
    await direct.storage.database.write.raw('ANALYZE api_keys');
    const request = { ...toCaller(toDigest('k1')), campaignId: tenants.campaign.id, at: instant(0) };
    const { calls } = direct.ports.stores;
    await calls.findActive(request);
    await calls.authorize(request);
    await placeCall(direct.ports, request, tenants.campaign.id, { contact: { phone: somePhone() } });
    await calls.cancel(request, { contactId: 'none' });
    await calls.cancel(request, { requestId: 'none' });

    // One transaction, so that everything runs on the connection that has prepared the statements.
    const plans = await direct.storage.database.lanes.keys.write.transaction(async (trx) => {
      await trx.raw('SET LOCAL plan_cache_mode = force_generic_plan');
      const { rows } = await trx.raw(`SELECT name FROM pg_prepared_statements WHERE statement LIKE '%api_keys%'`);
      const found: string[] = [];
      for (const { name } of rows) found.push(JSON.stringify((await trx.raw(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"('[]')`)).rows));
      return found;
    });
    await direct.close();
    expect(plans).to.have.length(6);
    for (const plan of plans) expect(plan).to.match(/"Relation Name":"api_keys"[^{}]*"Index Cond":"\(digest = /);
  });

  itOnPostgres('finds calls by their IDs with an index, although the table was empty when the statements were first planned', async () => {
    const { database, tenants } = await databaseWithTenants('postgres');
    const direct = await openDirect(database, fakeClock());
    const { write } = direct.storage.database.lanes.keys;
    const { apiKey, keyValue } = await createApiKey(
      direct.ports,
      { viewer: { ...tenants.users.account, tenancy: null }, actor: operator.actor },
      { name: 'A key', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' },
    );
    const cancel = () =>
      direct.ports.stores.calls.cancel(
        { ...toCaller(toDigest(keyValue)), campaignId: tenants.campaign.id, at: instant(0) },
        { requestId: 'none' },
      );
    // PostgreSQL keeps the plan of the sixth execution.
    for (let n = 0; n < 8; n++) await cancel();
    await write.raw(
      `INSERT INTO calls (campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, placed_at, due_at)
       SELECT ?, ?, ?, 'queued', 'c' || n, 'r' || n, '+49', 0, 0 FROM generate_series(1, 20000) AS n`,
      [tenants.campaign.id, tenants.account.id, apiKey.id],
    );
    const later = performance.now() + planLifetime;
    const now = mock.method(performance, 'now', () => later + 1);
    await cancel();
    now.mock.restore();

    const plans = await write.transaction(async (trx) => {
      const { rows } = await trx.raw(`SELECT name FROM pg_prepared_statements WHERE statement LIKE '%request_id = %.request_id%'`);
      return Promise.all(
        rows.map(async ({ name }: { name: string }) =>
          JSON.stringify((await trx.raw(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"('[]')`)).rows),
        ),
      );
    });
    await direct.close();
    expect(plans).to.have.length(2);
    for (const plan of plans)
      expect(plan).to.match(
        /"Index Name":"calls_campaign_id_request_id_key"[^{}]*"Index Cond":"\(\(campaign_id = [^{}]* AND \(request_id = /,
      );
  });
});
