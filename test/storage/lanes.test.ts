import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { toDigest } from '../../core/domain/api-keys.ts';
import { cancelCall, findActiveKey, placeCall } from '../../core/domain/calls/place-and-cancel.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { reportingOutages } from '../../core/storage/engine/errors.ts';
import { onEachDatabase } from '../support/databases.ts';
import { readProblem } from '../support/ports.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { tenantsOnce, toCaller } from '../support/tenants.ts';

describe("a database's connection lanes", () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = tenantsOnce(kind);
    let digest: string;
    const held: (() => void)[] = [];

    before(async () => {
      digest = toDigest((await createKeyOn({ direct }, tenants.users.account, 'K')).keyValue);
    });
    afterEach(() => {
      for (const release of held.splice(0)) release();
    });

    if (kind === 'postgres') {
      it("don't let the server compile statements, because that takes longer than running them", async () => {
        for (const [name, [pool]] of direct.storage.database.pools) {
          const { rows } = pool ? await pool.raw('SHOW jit') : { rows: [] };
          expect(rows, name).to.deep.equal([{ jit: 'off' }]);
        }
      });
    }

    async function occupy({ client }: Knex, connections = 1): Promise<void> {
      for (let count = 0; count < connections; count++) {
        const connection: unknown = await client.acquireConnection();
        held.push(() => client.releaseConnection(connection));
      }
    }
    const place = (requestId: string) =>
      placeCall(direct.ports, toCaller(digest), tenants.campaign.id, { requestId, contact: { phone: '+493012345678' } });

    it('let requests with keys through while all other connections are in use', async () => {
      const { database } = direct.storage;
      const { lists, 'sign-in': signIn, background } = database.lanes;
      for (const { read } of [database, lists, signIn, background]) await occupy(read, read.client.pool.max);
      await place('beside');
      await cancelCall(direct.ports, toCaller(digest), tenants.campaign.id, { requestId: 'beside' });
      await place('beside');
      expect(await findActiveKey(direct.ports, toCaller(digest))).to.deep.equal({ expiresAt: null, limits: null });
    });

    it('cancel a list query that takes too long, with advice to narrow the search, and stay usable', async () => {
      const { lists } = direct.storage.database.lanes;
      const slow = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000000) SELECT count(*) FROM n';
      const { list } = reportingOutages({ list: { slow: () => lists.query(slow) } });
      if (kind === 'postgres') {
        expect(await lists.query('SHOW statement_timeout')).to.deep.equal([{ statement_timeout: '3s' }]);
        await lists.read.raw('SET statement_timeout = 500');
        expect(await readProblem(list.slow())).to.match(/^invalid at search: This took too long/);
        await lists.read.raw('SET statement_timeout = 3000');
      } else {
        await lists.query('SELECT 1');
        mock.timers.enable({ apis: ['setInterval'] });
        try {
          let problem: string | undefined;
          const listing = readProblem(list.slow()).then((text) => {
            problem = text;
          });
          for (; problem === undefined; mock.timers.tick(deadlines.statement)) await setImmediate();
          await listing;
          expect(problem).to.match(/^invalid at search: This took too long/);
        } finally {
          mock.timers.reset();
        }
      }
      expect(await lists.query('SELECT 1 AS one')).to.deep.equal([{ one: 1 }]);
    });

    if (kind === 'sqlite') {
      it('share a single write connection: after at most eight key queries in a row, another lane gets a turn', async () => {
        const { database } = direct.storage;
        const { keys, 'sign-in': signIn, background } = database.lanes;
        await occupy(database.write);
        const order: string[] = [];
        const note = (lane: string, { write }: { write: Knex }) => write.raw('SELECT 1').then(() => order.push(lane));
        const writing = [
          ...['console', 'console'].map((lane) => note(lane, database)),
          ...['sign-in', 'sign-in'].map((lane) => note(lane, signIn)),
          note('background', background),
          ...Array.from({ length: 10 }, () => note('key', keys)),
        ];
        await setImmediate();
        for (const release of held.splice(0)) release();
        await Promise.all(writing);
        const first = Array.from({ length: 8 }, () => 'key');
        expect(order).to.deep.equal([...first, 'console', 'key', 'key', 'sign-in', 'background', 'console', 'sign-in']);
      });
    }
  });
});
