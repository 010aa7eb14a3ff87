import type { CallState } from '#contract/calls/calls.ts';
import { createApiKey, revokeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import type { User } from '../../core/domain/model.ts';
import { at, fakeClock } from './clock.ts';
import type { CoreHarness } from './core.ts';
import { ask, textAt } from './http.ts';
import { onDemand } from './tenants.ts';

type Expiration = Parameters<typeof createApiKey>[2]['expiration'];

/** Creates a key with an earlier creation date. */
export async function createKeyOn(
  { direct }: Pick<CoreHarness, 'direct'>,
  user: User,
  name: string,
  {
    on = '2026-10-01T08:00:00.000Z',
    expiration = { kind: 'none' },
    lastUsed = null,
  }: { on?: string; expiration?: Expiration; lastUsed?: string | null } = {},
): Promise<{ id: string; keyValue: string }> {
  const ports = { ...direct.ports, clock: fakeClock(on) };
  const actor = { who: { id: user.id, name: user.name }, address: '192.0.2.17' };
  const made = await createApiKey(ports, { viewer: { ...user, tenancy: null }, actor }, { name, expiration, timeZone: 'Europe/Berlin' });
  const { id } = made.apiKey;
  if (lastUsed !== null)
    await direct.storage.database
      .write('api_keys')
      .where({ id })
      .update({ last_used_at: instant(Date.parse(lastUsed)) });
  return { id, keyValue: made.keyValue };
}

/** Revokes the key with this name, as another administrator would at the same time. */
export async function revokeKeyElsewhere({ direct, tenants }: Pick<CoreHarness, 'direct' | 'tenants'>, name: string): Promise<void> {
  const [key] = await direct.storage.database.read('api_keys').where({ name }).select('id');
  const viewer = { ...tenants.users.partner, tenancy: null };
  await revokeApiKey(direct.ports, { viewer, actor: operator.actor }, key?.id ?? '', false);
}

/** Places a call and sets its state as a dialer would have. */
export async function placeCallIn(
  { core, direct }: Pick<CoreHarness, 'core' | 'direct'>,
  campaignId: string,
  keyValue: string,
  call: { requestId: string; contact: { phone: string; name: string } },
  { state = 'queued', detail = null, isSimulated = false }: { state?: CallState; detail?: string | null; isSimulated?: boolean } = {},
): Promise<string> {
  const answer = await ask('POST', onDemand(core.url, campaignId), { key: keyValue, body: call });
  const contactId = textAt(answer, 'contactId');
  const placedAt = plus(at(textAt(answer, 'placedAt')), -5 * 60_000);
  const isOver = state !== 'queued' && state !== 'dialing';
  await direct.storage.database
    .write('calls')
    .where({ contact_id: contactId })
    .update({
      state,
      detail,
      placed_at: instant(placedAt),
      dialed_at: state === 'queued' || state === 'cancelled' || state === 'lapsed' ? null : plus(placedAt, 1_000),
      ended_at: isOver ? plus(placedAt, 45_000) : null,
      due_at: state === 'queued' ? placedAt : null,
      provider: isSimulated ? 'simulated' : null,
    });
  return contactId;
}

const integrations = [
  'Practice software',
  'Front desk tablet',
  'Website form',
  'CRM sync',
  'Night shift script',
  'Zahnärzte-Portal',
  'Recall service',
];

const calls: readonly (readonly [name: string, CallState, detail: string | null])[] = [
  ['Ada Lovelace', 'completed', 'Talked to the contact.'],
  ['Grace Hopper', 'no_answer', 'No one answered.'],
  ['Edsger Dijkstra', 'busy', null],
  ['Barbara Liskov', 'failed', "The number isn't in service."],
  ['Alan Turing', 'unknown', "The provider didn't say what became of it."],
  ['Radia Perlman', 'cancelled', null],
  ['Ken Thompson', 'lapsed', null],
  ['Frances Allen', 'dialing', null],
  ['Niklaus Wirth', 'queued', null],
  ['Margaret Hamilton', 'queued', null],
];

const dayMs = 86_400_000;
const parts = [
  ['completed', 0.05],
  ['completed by person', 0.45],
  ['completed by machine', 0.2],
  ['no_answer', 0.18],
  ['busy', 0.06],
  ['failed', 0.02],
  ['cancelled', 0.04],
] as const;

/** Adds a month of call counts for a key: fewer on weekends, and none today. */
async function addHistory({ direct, tenants }: CoreHarness, keyId: string): Promise<void> {
  const today = Math.floor(Date.now() / dayMs) * dayMs;
  for (let ago = 1; ago < 30; ago++) {
    const quarterAt = instant(today - ago * dayMs + dayMs / 2);
    const isWeekend = [0, 6].includes(new Date(quarterAt).getUTCDay());
    const placed = Math.round((isWeekend ? 0.15 : 1) * (60 + 30 * Math.sin(ago / 3)));
    await direct.storage.database.write('api_key_usage').insert({ api_key_id: keyId, quarter_at: quarterAt, placed, cancelled: 0 });
    const counts = parts.map(([state, part]) => ({
      campaign_id: tenants.campaign.id,
      quarter_at: quarterAt,
      state,
      calls: Math.round(placed * part),
    }));
    await direct.storage.database.write('call_counts').insert(counts);
  }
}

/** Creates keys of every kind and calls in every state. */
export async function addSampleData(harness: CoreHarness): Promise<{ teammateKeyValue: string }> {
  const { account, teammate, sibling, partner } = harness.tenants.users;
  const year = { kind: 'years', years: 1 } as const;
  for (const [index, name] of integrations.entries()) {
    const user = [account, teammate, sibling, partner][index % 4] ?? account;
    const on = `2026-0${1 + (index % 9)}-14T08:30:00.000Z`;
    await createKeyOn(harness, user, name, {
      on,
      expiration: index % 2 ? year : { kind: 'none' },
      lastUsed: index % 3 ? '2026-11-20T16:45:00.000Z' : null,
    });
  }
  await createKeyOn(harness, account, 'Old appointment importer', {
    on: '2025-03-03T08:00:00.000Z',
    expiration: year,
    lastUsed: '2026-02-27T08:00:00.000Z',
  });
  await createKeyOn(harness, partner, 'Pilot project', { on: '2025-12-05T08:00:00.000Z', expiration: year });
  const { id, keyValue } = await createKeyOn(harness, teammate, 'Reminder service', { lastUsed: '2026-11-21T07:00:00.000Z' });
  await addHistory(harness, id);
  for (const [index, [name, state, detail]] of calls.entries()) {
    const call = { requestId: `order-${4711 + index}`, contact: { phone: `+4930555001${10 + index}`, name } };
    await placeCallIn(harness, harness.tenants.campaign.id, keyValue, call, { state, detail, isSimulated: index === 0 });
  }
  return { teammateKeyValue: keyValue };
}
