import { expect } from 'chai';
import { activityStore } from '../../core/storage/audit/audit.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import { freshDatabase, itOnPostgres } from '../support/databases.ts';
import { openDirect } from '../support/tenants.ts';

const always = { from: null, before: null };

describe('activity on PostgreSQL', () => {
  itOnPostgres("is read from the index for the filters, even if most of the user's events are in another scope", async () => {
    await using direct = await openDirect(await freshDatabase('postgres'));
    const { database } = direct.storage;
    await database.write.raw(
      `INSERT INTO audit_events (id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, partner_id, address)
       SELECT lpad(i::text, 9, '0'), i, CASE WHEN i % 2 = 0 THEN 'busy' ELSE 'other' END, 'Someone', 'list.exported', 'list', 'calls', 'calls',
         CASE WHEN i % 2 = 0 THEN 'p2' ELSE 'p1' END, '192.0.2.1'
       FROM generate_series(1, 20000) AS i`,
    );
    await database.write.raw('ANALYZE audit_events');
    const plans: string[] = [];
    const query: Lane['query'] = async (sql, values) => {
      plans.push(JSON.stringify(await database.query(`EXPLAIN (FORMAT JSON) ${sql}`, values)));
      return database.query(sql, values);
    };
    const filter = { at: always, actor: { id: 'busy' }, action: null, subject: null };
    const events = await activityStore({ ...database.lanes, lists: { ...database, query } }).list(
      { kind: 'partner', partnerId: 'p1' },
      filter,
      null,
      51,
    );
    expect(events).to.deep.equal([]);
    expect(plans.at(-1)).to.include('"Index Name":"audit_events_of_partner_by_actor"');
  });
});
