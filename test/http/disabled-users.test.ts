import { Readable } from 'node:stream';
import { expect } from 'chai';
import { request } from 'undici';
import { operator } from '../../core/domain/audit/audit.ts';
import { disableUser, enableUser } from '../../core/domain/directory/users.ts';
import { plus } from '../../core/domain/instant.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask } from '../support/http.ts';
import {
  createKey,
  type DirectAccess,
  databaseWithTenants,
  onDemand,
  openDirect,
  password,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

const toComparable = ({ status, headers: { date: _, ...headers }, text }: Answer) => JSON.stringify([status, headers, text]);

describe('a disabled user', () => {
  onEachDatabase((kind) => {
    let cores: [RunningCore, RunningCore];
    let direct: DirectAccess;
    let tenants: Tenants;
    let database: string;

    before(async () => {
      ({ database, tenants } = await databaseWithTenants(kind));
      cores = [await startCoreHere(database), await startCoreHere(database)];
      direct = await openDirect(database);
    });
    after(async () => {
      await direct.close();
      for (const core of cores) await core.close();
    });
    afterEach(async () => {
      await direct.storage.database.write('users').update({ disabled_at: null });
    });

    it("can't place or cancel with any key, from the next request on, whether or not the core has seen the key before", async () => {
      const [here, there] = cores;
      const cookie = await signIn(here.url, 'ada@example.com');
      const used = await createKey(here.url, cookie, 'Used');
      const unused = await createKey(here.url, cookie, 'Unused');
      const body = { requestId: 'before', contact: { phone: somePhone() } };
      for (const { url } of cores) expect((await placeCall(url, tenants.campaign.id, used.keyValue, body)).status).to.equal(202);
      const refused = toComparable(await placeCall(here.url, tenants.campaign.id, `${used.keyValue.slice(0, -1)}!`, body));

      await disableUser(direct.ports, operator, tenants.users.account);
      for (const { url } of cores) {
        for (const { keyValue } of [used, unused]) {
          const cancel = ask('DELETE', `${onDemand(url, tenants.campaign.id)}/by-request-id/before`, { key: keyValue });
          const answers = await Promise.all([placeCall(url, tenants.campaign.id, keyValue, body), cancel]);
          expect(answers.map(toComparable)).to.deep.equal([refused, refused]);
        }
      }

      await enableUser(direct.ports, operator, tenants.users.account);
      for (const { keyValue } of [used, unused]) {
        expect((await placeCall(there.url, tenants.campaign.id, keyValue)).status).to.equal(202);
      }
    });

    it("loses all sessions, and can't sign in even with the correct password, which gets the same response as a wrong password", async () => {
      const [{ url }] = cores;
      const cookie = await signIn(url, 'tom@example.com');
      expect(await disableUser(direct.ports, operator, tenants.users.teammate)).to.equal(1);
      expect((await ask('GET', `${url}/console/session`, { cookie })).status).to.equal(401);
      const tryIn = async (given: string) =>
        toComparable(await ask('POST', `${url}/console/session`, { body: { email: 'tom@example.com', password: given } }));
      expect(await tryIn(password)).to.equal(await tryIn('a wrong password'));
      await enableUser(direct.ports, operator, tenants.users.teammate);
      expect((await ask('GET', `${url}/console/session`, { cookie })).status).to.equal(401);
      await signIn(url, 'tom@example.com');
    });

    it('gets a 401 for requests that were still waiting for their turn', async () => {
      const [{ url }] = cores;
      const { database: connection } = direct.storage;
      const cookie = await signIn(url, 'pat@example.com');
      const { id } = await createKey(url, cookie);
      /** Sends a request, and waits until the core has read its session. */
      async function begin<Answer>(send: () => Promise<Answer>): Promise<{ answer: Promise<Answer> }> {
        await connection.write('sessions').update({ last_seen_at: plus(direct.ports.clock.now(), -120_000) });
        const answer = send();
        const recently = plus(direct.ports.clock.now(), -60_000);
        await until(async () => (await connection.read('sessions').where('last_seen_at', '>', recently)).length > 0);
        return { answer };
      }
      const { promise: disabled, resolve } = Promise.withResolvers<void>();
      async function* slowBody() {
        yield '{"email":"late@example.com","name":"Late",';
        await disabled;
        yield '"userType":"partner"}';
      }
      const headers = { Cookie: cookie, 'Content-Type': 'application/json' };
      const slow = await begin(() => request(`${url}/console/users`, { method: 'POST', headers, body: Readable.from(slowBody()) }));
      const waiting = await begin(() => ask('DELETE', `${url}/console/api-keys/${id}`, { cookie }));
      await disableUser(direct.ports, operator, tenants.users.partner);
      resolve();
      const { statusCode, body } = await slow.answer;
      await body.dump();
      expect([statusCode, (await waiting.answer).status]).to.deep.equal([401, 401]);
      expect(await connection.read('api_keys').where({ id })).to.have.length(1);
    });

    // Only PostgreSQL can make a query wait for a lock.
    if (kind === 'postgres') {
      it('gets a 401 for a list that was still waiting for its turn', async () => {
        const [{ url }] = cores;
        const [ada, pat] = [await signIn(url, 'ada@example.com'), await signIn(url, 'pat@example.com')];
        const list = (cookie: string) => ask('GET', `${url}/console/campaigns`, { cookie });
        // Opens the connections, so that the first list needn't wait for the lock longer than PostgreSQL lets it.
        await Promise.all([list(ada), list(pat)]);
        const answers = await direct.storage.database.write.transaction(async (trx) => {
          await trx.raw('LOCK TABLE campaigns IN ACCESS EXCLUSIVE MODE');
          const first = list(ada);
          const blocked = `SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database
            WHERE datname = current_database() AND NOT granted AND relation = 'campaigns'::regclass`;
          await until(async () => (await trx.raw(blocked)).rows.length > 0);
          const second = list(pat);
          await ask('GET', `${url}/console/session`, { cookie: pat });
          await disableUser(direct.ports, operator, tenants.users.partner);
          return { first, second };
        });
        expect([(await answers.first).status, (await answers.second).status]).to.deep.equal([200, 401]);
      });
    }

    it('is shown to administrators as disabled, and an event says who disabled them', async () => {
      const [{ url }] = cores;
      await disableUser(direct.ports, { ...operator, actor: { who: null, address: 'local:ada' } }, tenants.users.sibling);
      const cookie = await signIn(url, 'pat@example.com');
      const { users } = (await ask('GET', `${url}/console/users`, { cookie })).json as { users: { email: string; disabledAt: string }[] };
      const disabled = users.filter(({ disabledAt }) => disabledAt !== null).map(({ email }) => email);
      const { events } = (await ask('GET', `${url}/console/activity`, { cookie })).json as {
        events: { action: string; address: string }[];
      };
      const event = events.find(({ action }) => action === 'user.disabled');
      // A partner must not learn the names of the server's operators.
      expect([disabled, event?.address]).to.deep.equal([['sue@example.com'], 'local']);
      const staff = await signIn(url, 'stan@example.com');
      await ask('PUT', `${url}/console/session/tenancy`, { cookie: staff, body: { kind: 'partner', id: tenants.partner.id } });
      expect((await ask('GET', `${url}/console/activity`, { cookie: staff })).text).to.contain('"address":"local:ada"');
    });
  });
});
