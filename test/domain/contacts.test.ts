import { expect } from 'chai';
import { recordExport } from '../../core/domain/audit/activity.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { eraseContact, eraseOldContacts, exportContact, forgetOldCounts } from '../../core/domain/calls/contacts.ts';
import { endOverdueCalls } from '../../core/domain/calls/dialing.ts';
import type { AuditEvent, CallKey, ContactCall } from '../../core/domain/model.ts';
import { at } from '../support/clock.ts';
import { fakePorts, viewers } from '../support/ports.ts';

const phone = '+493012345678';
const createCall = (contactId: string): ContactCall => ({
  ...{ contactId, campaignId: 'g', campaignName: 'G', accountName: 'A', requestId: contactId, state: 'busy', phone, name: null },
  ...{ timeZone: null, variables: {}, notBefore: null, notAfter: null, placedAt: at('2026-11-20T09:00:00Z'), dialedAt: null },
  ...{ endedAt: null, durationSeconds: null, detail: null },
});
const signal = new AbortController().signal;

/** Creates ports with three calls to one number, of which this many are erased. */
function createPorts(erased = 2) {
  const asked: unknown[] = [];
  const events: AuditEvent[] = [];
  const calls = ['c1', 'c2', 'c3'].map(createCall);
  const contacts = {
    findCalls: async (number: string) => {
      asked.push(number);
      return calls;
    },
    erase: async (given: readonly CallKey[], now: unknown, toEvent: (erased: number) => AuditEvent) => {
      asked.push(given, now);
      events.push(toEvent(erased));
      return { cancelled: 1, erased };
    },
  };
  const doNotCall = {
    entriesFor: async (number: string) => {
      asked.push(number);
      return [];
    },
  };
  const retention = {
    erase: async (endedBefore: unknown, stopping?: AbortSignal, onErased?: (calls: number) => void) => {
      asked.push(endedBefore, stopping);
      onErased?.(erased);
      stopping?.throwIfAborted();
      return erased;
    },
    forgetCounts: async (...given: unknown[]) => {
      asked.push(...given);
      return 7;
    },
  };
  const activity = { record: async (event: AuditEvent) => void events.push(event) };
  const throttle = { blockedUntil: async () => null, take: async () => true };
  return { ports: fakePorts({ stores: { contacts, doNotCall, retention, activity }, throttle }), calls, asked, events };
}
const summarize = (events: readonly AuditEvent[]) => events.map(({ action, subject, owningScope }) => ({ action, subject, owningScope }));

describe("a contact's data", () => {
  it("is exported, and the recorded event doesn't identify the contact", async () => {
    const { ports, calls, asked, events } = createPorts();
    expect(await exportContact(ports, operator.actor, phone)).to.deep.equal({ calls, entries: [] });
    expect(asked).to.deep.equal([phone, phone]);
    const subject = { kind: 'contact', id: 'id1', name: '3 calls' };
    expect(summarize(events)).to.deep.equal([{ action: 'contact.exported', subject, owningScope: null }]);
  });

  it("is erased except for calls in progress, and the recorded event doesn't identify the contact", async () => {
    const { ports, calls, asked, events } = createPorts();
    expect(await eraseContact(ports, operator.actor, phone)).to.deep.equal({ erased: 2, cancelled: 1, dialing: 1 });
    expect(asked).to.deep.equal([phone, calls, ports.clock.now()]);
    const subject = { kind: 'contact', id: 'id1', name: '2 calls' };
    expect(summarize(events)).to.deep.equal([{ action: 'contact.erased', subject, owningScope: null }]);
  });
});

describe('a list saved from the console', () => {
  it("is recorded with its length in the user's scope", async () => {
    const { ports, events } = createPorts();
    await recordExport(ports, { viewer: viewers.tied, actor: { who: viewers.tied, address: '192.0.2.1' } }, { list: 'calls', rows: 12 });
    const subject = { kind: 'list', id: 'calls', name: 'calls (12 rows)' };
    expect(summarize(events)).to.deep.equal([{ action: 'list.exported', subject, owningScope: { accountId: 'a1', partnerId: 'p1' } }]);
  });
});

describe('housekeeping', () => {
  const { clock } = fakePorts();

  it('erases the contacts of calls that ended before the retention period, and records an event', async () => {
    const { ports, asked, events } = createPorts();
    expect(await eraseOldContacts(ports, operator.actor, 30, signal)).to.equal(2);
    expect(asked).to.deep.equal([at('2026-10-22T09:00:00Z'), signal]);
    const subject = { kind: 'call-log', id: 'id1', name: '2 calls' };
    expect(summarize(events)).to.deep.equal([{ action: 'retention.run', subject, owningScope: null }]);
  });

  it('records the calls that were erased before the core stopped', async () => {
    const { ports, events } = createPorts();
    const stopped = await eraseOldContacts(ports, operator.actor, 30, AbortSignal.abort()).catch(({ name }: Error) => name);
    expect([stopped, events.map(({ subject }) => subject.name)]).to.deep.equal(['AbortError', ['2 calls']]);
  });

  it("doesn't record an event if it erases nothing", async () => {
    const { ports, events } = createPorts(0);
    expect([await eraseOldContacts(ports, operator.actor, 30), events]).to.deep.equal([0, []]);
  });

  it("deletes counts once they're too old for a chart in any time zone", async () => {
    const { ports, asked } = createPorts();
    expect(await forgetOldCounts(ports.stores.retention, clock, signal)).to.equal(7);
    expect(asked).to.deep.equal([at('2026-10-21T09:00:00Z'), signal]);
  });

  it('ends overdue calls, but first corrects the due times left by a wrong clock', async () => {
    const asked: unknown[] = [];
    const step =
      (name: string, count: number) =>
      async (...given: unknown[]) => {
        asked.push([name, ...given]);
        return count;
      };
    const ports = fakePorts({
      stores: { dialing: { recoverFromClockStep: step('recover', 100), lapse: step('lapse', 1), endForgotten: step('end', 2) } },
    });
    expect(await endOverdueCalls(ports.stores.dialing, clock, signal)).to.equal(3);
    expect(asked).to.deep.equal([
      ['recover', clock.now(), false, signal],
      ['lapse', clock.now(), signal],
      ['end', clock.now(), signal],
    ]);
  });
});
