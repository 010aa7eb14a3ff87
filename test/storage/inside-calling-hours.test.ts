import { expect } from 'chai';
import { DateTime } from 'luxon';
import { createApiKey, digestOf } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { nextStep, settlementOf } from '../../core/domain/calls/dialing.ts';
import { type Millis, plus } from '../../core/domain/instant.ts';
import type { ClaimedCall, NewCall } from '../../core/domain/model.ts';
import type { Provider } from '../../core/domain/ports/dialing.ts';
import { getZones } from '../../core/domain/protection/hours/zones.ts';
import { fakeClock, testRandomness } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { callerOf, type DirectAccess, databaseWithTenants, openDirect, type Tenants } from '../support/tenants.ts';

const zones = (
  'Pacific/Auckland Australia/Sydney Australia/Brisbane Australia/Adelaide Australia/Lord_Howe Asia/Tokyo Asia/Shanghai Asia/Kathmandu ' +
  'Asia/Kolkata Asia/Karachi Asia/Tehran Asia/Dubai Asia/Jerusalem Asia/Beirut Europe/Istanbul Africa/Cairo Africa/Johannesburg Europe/Kyiv ' +
  'Europe/Helsinki Europe/Berlin Europe/Paris Europe/Madrid Africa/Casablanca Europe/London Europe/Lisbon Atlantic/Azores Atlantic/Reykjavik ' +
  'America/Sao_Paulo America/Argentina/Buenos_Aires America/Santiago America/St_Johns America/Halifax America/New_York America/Chicago ' +
  'America/Denver America/Phoenix America/Los_Angeles America/Anchorage Pacific/Honolulu Pacific/Chatham'
).split(' ');
/** Numbers that tell their zone, and no `timeZone`. */
const telling = ['+4930200000', '+12125550142', '+13125550142', '+13105550142', '+81312345678', '+61290000000'];

const everyDay = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
const step = { minutes: 30 };
/** In which steps both cores are killed. */
const kills = new Map([
  [7, 'before the hand-off'],
  [19, 'after the hand-off'],
  [23, 'before the hand-off'],
  [34, 'after the hand-off'],
]);

describe('a thousand calls to forty time zones, placed at the same time with calling hours from 9 to 20', () => {
  onEachDatabase((kind) => {
    for (const [season, start] of [
      ['Europe puts its clocks back', '2026-10-24T23:30:00.000Z'],
      ['Europe puts its clocks forward', '2026-03-28T23:30:00.000Z'],
    ] as const) {
      it(`are each handed off inside their hours while ${season}, although cores are killed`, async () => {
        const clock = fakeClock(start);
        const { database, tenants } = await databaseWithTenants(kind);
        let cores = [await openDirect(database, clock), await openDirect(database, clock)];
        try {
          await placeAll(first(cores), tenants, clock.now());
          const handedOff = new Set<string>();
          for (let round = 0; round < 2 * 36; round++, clock.advance(step)) {
            const core = cores[round % 2] ?? first(cores);
            const killed = kills.get(round);
            await dialDue(core, clock.now(), killed, handedOff);
            if (killed === undefined) continue;
            await Promise.all(cores.map((each) => each.close()));
            cores = [await openDirect(database, clock), await openDirect(database, clock)];
          }
          const states = await first(cores).storage.database.read('calls').select('state').count({ calls: '*' }).groupBy('state');
          expect(handedOff.size, JSON.stringify(states)).to.equal(1_000);
        } finally {
          await Promise.all(cores.map((each) => each.close()));
        }
      });
    }

    function first([core]: DirectAccess[]): DirectAccess {
      if (!core) throw new Error('No core is open.');
      return core;
    }

    async function placeAll({ ports }: DirectAccess, tenants: Tenants, now: Millis): Promise<void> {
      const owner = { accountId: tenants.account.id, partnerId: tenants.partner.id };
      const scope = { kind: 'account', id: tenants.account.id, name: 'Blue Clinic', owner } as const;
      const rules = { hours: [{ prefix: '', days: [...everyDay], from: '09:00', to: '20:00' }] };
      await ports.stores.protection.setRules(scope, rules, eventOf(now));
      const viewer = { ...tenants.users.account, tenancy: null };
      const input = { name: 'A key', expiration: { kind: 'none' }, timeZone: 'UTC' } as const;
      const digest = digestOf((await createApiKey(ports, { viewer, actor: operator }, input)).keyValue);
      const calls = Array.from({ length: 1_000 }, (_, index): NewCall => {
        const isTelling = index % 10 === 0;
        return {
          contactId: testRandomness.id(),
          requestId: `call-${index}`,
          phone: isTelling ? (telling[(index / 10) % telling.length] ?? '') : '+4930200000',
          ...{ name: null, variables: null, notBefore: null, notAfter: null },
          timeZone: isTelling ? null : (zones[index % zones.length] ?? null),
        };
      });
      const request = () => ({ ...callerOf(digest), campaignId: tenants.campaign.id, at: now });
      const placed = await Promise.all(calls.map((call) => ports.stores.calls.place(request(), call)));
      expect(new Set(placed.map(({ kind: result }) => result))).to.deep.equal(new Set(['placed']));
    }

    const provider: Provider = {
      name: 'webhook',
      deduplicates: true,
      handOff: async () => ({ kind: 'taken' }),
      conclude: () => null,
    };

    async function dialDue(core: DirectAccess, now: Millis, killed: string | undefined, handedOff: Set<string>): Promise<void> {
      const { dialing } = core.ports.stores;
      for (;;) {
        const claimed = await dialing.claim(200, provider.name, now, plus(now, 30_000));
        if (claimed.length === 0) return;
        if (killed !== 'before the hand-off') await Promise.all(claimed.map((call) => dial(core, call, now, killed, handedOff)));
        if (killed !== undefined) return;
      }
    }

    async function dial(
      { ports }: DirectAccess,
      call: ClaimedCall,
      now: Millis,
      killed: string | undefined,
      handedOff: Set<string>,
    ): Promise<void> {
      const next = nextStep(call, provider, now);
      if (next !== 'hand-off') {
        await ports.stores.dialing.settle(call, next);
        return;
      }
      expectInside(call, now);
      handedOff.add(call.contactId);
      if (killed !== undefined) return;
      await ports.stores.dialing.settle(
        call,
        settlementOf(call, await provider.handOff(call), provider, now, () => 0.5),
      );
    }

    /** Checks with another library's arithmetic that it's between 9 and 20 in each zone in which the person may be. */
    function expectInside({ phone, timeZone }: ClaimedCall, now: Millis): void {
      for (const zone of timeZone === null ? getZones(phone) : [timeZone]) {
        const local = DateTime.fromMillis(now, { zone });
        expect(local.hour, `${local.toISO()} in ${zone}`).to.be.within(9, 19);
      }
    }
  });
});

function eventOf(now: Millis) {
  const subject = { kind: 'account', id: 'a', name: 'Blue Clinic' } as const;
  return {
    id: testRandomness.id(),
    at: now,
    actor: null,
    action: 'calling-hours.changed',
    subject,
    owningScope: null,
    address: 'local',
  } as const;
}
