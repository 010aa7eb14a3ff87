import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { addedNumbersSchema } from '#contract/protection/protection.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import {
  createKey,
  type DirectAccess,
  databaseWithTenants,
  openDirect,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** The figures in the documentation come from `DO_NOT_CALL_RACES=3000`. */
const races = Number(process.env['DO_NOT_CALL_RACES'] ?? 60);
const lanes = 6;

describe('a number that is listed on one core while another core places and dials a call to it', () => {
  onEachDatabase((kind) => {
    let receiver: Awaited<ReturnType<typeof startReceiver>>;
    let cores: CoreProcess[] = [];
    let direct: DirectAccess;
    let tenants: Tenants;

    before(async () => {
      receiver = await startReceiver();
      const created = await databaseWithTenants(kind);
      tenants = created.tenants;
      const environment = { DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: signingSecret };
      cores = await Promise.all([spawnCore(created.database, environment), spawnCore(created.database, environment)]);
      direct = await openDirect(created.database);
    });
    after(async () => {
      await Promise.all(cores.map((core) => core.stop()));
      await direct.close();
      await receiver.close();
    });

    it('is never dialed unless its call was claimed earlier, and then the response says so', async () => {
      const [here = '', there = ''] = cores.map(({ url }) => url);
      const cookie = await signIn(there, 'ada@example.com');
      const key = (await createKey(here, cookie)).keyValue;
      /** For each placed call, how many calls were being dialed according to the response to its do-not-call entry. */
      const beingDialed = new Map<string, number>();
      let left = races;
      async function race(): Promise<void> {
        for (let nth = left--; nth > 0; nth = left--) {
          const phone = somePhone();
          const placing = placeCall(here, tenants.campaign.id, key, { contact: { phone } });
          // The dialer claims a call within milliseconds. So, depending on this delay, the number is listed before the claim, at the same
          // time or after it.
          await delay(nth % 25);
          const added = await ask('POST', `${there}/console/do-not-call`, { cookie, body: { phones: [phone], reason: 'asked' } });
          const placed = await placing;
          if (placed.status === 202) beingDialed.set(textAt(placed, 'contactId'), addedNumbersSchema.parse(added.json).beingDialed);
        }
      }
      await Promise.all(Array.from({ length: lanes }, race));
      const { read } = direct.storage.database;
      const isWaiting = async () => {
        const [row] = await read('calls').where({ state: 'queued' }).orWhere({ handoff: 'open' }).limit(1);
        return row !== undefined;
      };
      await until(async () => !(await isWaiting()));
      const dialed = new Set(receiver.received.map(({ handoff }) => handoff.contactId));
      const wrong = [...beingDialed].filter(([contactId, calls]) => dialed.has(contactId) !== calls > 0);
      expect(wrong).to.deep.equal([]);
      const states: { state: string; contact_id: string }[] = await read('calls').select('state', 'contact_id');
      const blocked = states.filter(({ state }) => state === 'blocked').map(({ contact_id }) => contact_id);
      expect(blocked).to.have.members([...beingDialed.keys()].filter((contactId) => !dialed.has(contactId)));
    });
  });
});
