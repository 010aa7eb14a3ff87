import { expect } from 'chai';
import { DateTime } from 'luxon';
import { weekdays } from '#contract/protection/calling-hours.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { openCore, startCoreHere } from '../support/core.ts';
import { itOnPostgres } from '../support/databases.ts';
import { type Answer, ask, textAt } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const zones = (
  'Pacific/Auckland Australia/Sydney Australia/Brisbane Australia/Adelaide Australia/Lord_Howe Asia/Tokyo Asia/Shanghai Asia/Kathmandu ' +
  'Asia/Kolkata Asia/Karachi Asia/Tehran Asia/Dubai Asia/Jerusalem Asia/Beirut Europe/Istanbul Africa/Cairo Africa/Johannesburg Europe/Kyiv ' +
  'Europe/Helsinki Europe/Berlin Europe/Paris Europe/Madrid Africa/Casablanca Europe/London Europe/Lisbon Atlantic/Azores Atlantic/Reykjavik ' +
  'America/Sao_Paulo America/Argentina/Buenos_Aires America/Santiago America/St_Johns America/Halifax America/New_York America/Chicago ' +
  'America/Denver America/Phoenix America/Los_Angeles America/Anchorage Pacific/Honolulu Pacific/Chatham'
).split(' ');
/** Numbers with a known zone, so that the call doesn't need a `timeZone`. */
const telling = [
  ['+4930200000', 'Europe/Berlin'],
  ['+12125550142', 'America/New_York'],
  ['+13125550142', 'America/Chicago'],
  ['+13105550142', 'America/Los_Angeles'],
  ['+81312345678', 'Asia/Tokyo'],
  ['+61290000000', 'Australia/Sydney'],
] as const;
const placedAtOnce = 50;
/** How many hours the test covers: until the morning after the next one. */
const hours = 34;
const calls = 125;

describe('calls to forty time zones, all placed at the same time with calling hours from 9 to 20', () => {
  itOnPostgres('are each handed off once, inside their hours, by two cores while Europe sets its clocks forward', async function () {
    this.timeout(600_000);
    const clock = fakeClock('2026-03-28T23:30:00.000Z');
    const scene = await openScene(clock);
    try {
      const placed = await scene.placeAll();
      for (let hour = 0; hour < hours; hour++, clock.advance({ hours: 1 })) await scene.dialDue();
      expect(scene.handedOffOutsideHours()).to.deep.equal([]);
      expect(scene.taken.filter((contactId) => placed.includes(contactId)).toSorted()).to.deep.equal(placed.toSorted());
    } finally {
      await scene.close();
    }
  });
});

/** Starts two cores that dial through a provider, which checks when each call is handed off. */
async function openScene(clock: FakeClock) {
  const zoneByCall = new Map<string, string>();
  /** Everything that the cores handed off, accepted or not. */
  const handoffs: { contactId: string; at: number }[] = [];
  /** The calls that the provider has accepted. A call can be handed off before its `202` is read here. */
  const taken: string[] = [];
  /** A call that the provider refuses once. */
  let refused = '';
  const receiver = await startReceiver(({ handoff: { contactId } }, response) => {
    handoffs.push({ contactId, at: clock.now() });
    if (contactId === refused) {
      refused = '';
      return response.writeHead(503).end();
    }
    taken.push(contactId);
    return response.writeHead(202).end();
  });

  const environment = { DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: signingSecret };
  const { core, database, direct, tenants, close } = await openCore({ kind: 'postgres', clock, environment });
  const other = await startCoreHere(database, { clock, environment });
  const cookie = await signIn(core.url, 'pat@example.com');
  const { keyValue } = await createKey(core.url, cookie);

  async function place(contact: object, zone: string, more: object = {}): Promise<string> {
    const call = { requestId: crypto.randomUUID(), contact, ...more };
    let answer: Answer | null;
    // On a busy machine, this may take longer than the core waits for the database. If the core doesn't know the result, it closes the
    // connection.
    do answer = await placeCall(core.url, tenants.campaign.id, keyValue, call).catch(() => null);
    while (answer === null || answer.status === 503);
    expect(answer.status, answer.text).to.equal(202);
    const contactId = textAt(answer, 'contactId');
    zoneByCall.set(contactId, zone);
    return contactId;
  }

  /** Lets the cores dial everything that's due now. */
  async function dialDue(): Promise<void> {
    // A placed call makes a core look for due calls immediately.
    await Promise.all([core, other].map(({ url }) => placeCall(url, tenants.siblingCampaign.id, keyValue).catch(() => undefined)));
    await until(async () => !(await isBusy()));
  }

  async function isBusy(): Promise<boolean> {
    const { read } = direct.storage.database;
    const busy = read('calls').where('due_at', '<=', clock.now()).orWhereIn('handoff', ['open', 'doubt']);
    return (await read(busy.as('calls')).whereNotNull('due_at').first('contact_id')) !== undefined;
  }

  return {
    ...{ taken, dialDue },

    handedOffOutsideHours(): string[] {
      return handoffs.flatMap(({ contactId, at }) => {
        const zone = zoneByCall.get(contactId);
        const local = DateTime.fromMillis(at, { zone: zone ?? 'UTC' });
        return zone !== undefined && (local.hour < 9 || local.hour >= 20) ? [`${local.toISO()} in ${zone}`] : [];
      });
    },

    async placeAll(): Promise<string[]> {
      const week = { rules: [{ prefix: '', days: weekdays, from: '09:00', to: '20:00' }] };
      const scope = `scope=account&id=${tenants.account.id}`;
      expect((await ask('PUT', `${core.url}/console/calling-hours?${scope}`, { cookie, body: week })).status).to.equal(200);
      const wanted: string[] = [];
      const lanes = Array.from({ length: placedAtOnce }, async (_, lane) => {
        for (let index = lane; index < calls; index += placedAtOnce) {
          const [phone, zone] = telling[index % (10 * telling.length)] ?? ['+4930200000', zones[index % zones.length] ?? ''];
          wanted.push(await place({ phone, ...(index % (10 * telling.length) < telling.length ? {} : { timeZone: zone }) }, zone));
        }
      });
      await Promise.all(lanes);
      // This call's next attempt would be after 20:00.
      const evening = DateTime.fromMillis(clock.now(), { zone: 'Europe/Berlin' }).set({ hour: 19, minute: 30 }).toUTC().toISO();
      refused = await place({ phone: '+4930211111' }, 'Europe/Berlin', { notBefore: evening });
      wanted.push(refused);
      await dialDue();
      return wanted;
    },

    async close(): Promise<void> {
      await other.close();
      await close();
      await receiver.close();
    },
  };
}
