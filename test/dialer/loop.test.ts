import { expect } from 'chai';
import pino from 'pino';
import { type Dialer, startDialer } from '../../core/dialer/loop.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import type { DialingStore, HandoffResult, Provider } from '../../core/domain/ports/dialing.ts';
import { fakeClock } from '../support/clock.ts';
import { freshDatabase } from '../support/databases.ts';
import { insertCalls } from '../support/stored-calls.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('the dialer loop', () => {
  let direct: DirectAccess;
  let tenants: Tenants;
  let clock: ReturnType<typeof fakeClock>;
  let dialer: Dialer;
  let handedOff: string[];

  beforeEach(async () => {
    clock = fakeClock();
    direct = await openDirect(await freshDatabase('sqlite'), clock);
    tenants = await createTenants(direct.ports);
    handedOff = [];
  });
  afterEach(async () => {
    await dialer.close();
    await direct.close();
  });

  const addCall = (contactId: string) => insertCalls(direct, tenants, [contactId]);
  const call = (contactId: string) => direct.storage.database.read('calls').where({ contact_id: contactId }).first();
  /** Creates a provider that returns these results in order, and then repeats the last one. */
  const createProvider = (results: HandoffResult[], deduplicates = true): Provider => ({
    ...{ name: 'webhook', deduplicates, conclude: () => null },
    handOff: async ({ contactId }) => {
      handedOff.push(contactId);
      return results[Math.min(handedOff.length, results.length) - 1] ?? { kind: 'taken' };
    },
  });
  const start = (provider: Provider, { store = direct.ports.stores.dialing, concurrency = 4 } = {}) => {
    dialer = startDialer({
      ...{ store, provider, concurrency, clock, isTrusted: async () => true, random: () => 0.5, log: pino({ level: 'silent' }) },
      observer: { onClaim() {}, onHandoff() {}, onLeaseLost() {}, onOutcome() {}, onResult() {} },
    });
  };
  const handoffIs = (contactId: string, handoff: string) => until(async () => (await call(contactId))?.handoff === handoff);

  it('retries settling a call after an error, but hands the call off only once', async () => {
    let failures = 1;
    const store: DialingStore = {
      ...direct.ports.stores.dialing,
      settle: async (...args) => {
        if (failures-- > 0) throw new Error('The database is out of reach.');
        return direct.ports.stores.dialing.settle(...args);
      },
    };
    await addCall('c');
    start(createProvider([{ kind: 'taken' }]), { store });
    await handoffIs('c', 'taken');
    expect(handedOff).to.deep.equal(['c']);
  });

  it('keeps a call in doubt even if the provider then refuses it temporarily, and ends it as unknown', async () => {
    await addCall('c');
    start(
      createProvider([
        { kind: 'answer-lost', detail: 'lost', reason: 'no response' },
        { kind: 'not-taken', detail: 'busy', reason: 'HTTP 503' },
      ]),
    );
    await handoffIs('c', 'doubt');
    while (handedOff.length < 2) {
      clock.advance({ seconds: 2 });
      dialer.wake();
      await until(async () => Number((await call('c'))?.due_at) > clock.now());
    }
    expect(await call('c')).to.include({ handoff: 'doubt' });
    clock.advance(dialingLimits.window);
    dialer.wake();
    await until(async () => (await call('c'))?.state !== 'dialing');
    expect(await call('c')).to.include({ state: 'unknown' });
  });

  it('waits for Retry-After before the next hand-off', async () => {
    await addCall('c');
    start(createProvider([{ kind: 'not-taken', detail: 'busy', reason: 'HTTP 503', retryAfter: 60 }, { kind: 'taken' }]));
    await handoffIs('c', 'retry');
    expect((await call('c'))?.due_at).to.equal(clock.now() + 60_000);
  });

  it('never exceeds its concurrency limit', async () => {
    const results: ((result: HandoffResult) => void)[] = [];
    for (let n = 0; n < 5; n++) await addCall(`c${n}`);
    start({ ...createProvider([]), handOff: () => new Promise((resolve) => results.push(resolve)) }, { concurrency: 2 });
    await until(() => results.length === 2);
    dialer.wake();
    expect((await direct.storage.database.read('calls').where({ handoff: 'open' })).length).to.equal(2);
    await until(() => {
      for (const resolve of results) resolve({ kind: 'taken' });
      return results.length === 5;
    });
  });
});
