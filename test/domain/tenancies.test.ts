import { expect } from 'chai';
import { listActivity } from '../../core/domain/audit/activity.ts';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { firstDayStart, groupByDay } from '../../core/domain/calls/days.ts';
import {
  createAccount,
  createCampaign,
  createPartner,
  listAccounts,
  listCampaigns,
  searchTenancies,
} from '../../core/domain/directory/directory.ts';
import type { AuditEvent } from '../../core/domain/model.ts';
import { errorCode, Problem } from '../../core/domain/problem.ts';
import { at } from '../support/clock.ts';
import { fakePorts, readProblem, tenancies, viewers } from '../support/ports.ts';

const { account, partner, staff } = viewers;

function createPorts() {
  const asked: unknown[] = [];
  const events: AuditEvent[] = [];
  const note = async (what: unknown, event: AuditEvent) => {
    asked.push(what);
    events.push(event);
  };
  const list = async (...access: unknown[]) => {
    asked.push(...access);
    return [];
  };
  const ports = fakePorts({
    stores: {
      tenancies: {
        ...tenancies,
        createPartner: note,
        createAccount: note,
        createCampaign: note,
        listAccounts: list,
        listCampaigns: list,
        search: list,
      },
      activity: { list, count: async () => 0 },
      directory: {
        findPartner: async (_, id) => (id === 'p1' ? { ...partnerOfAll, accounts: 1 } : null),
        findAccount: async (_, id) => (id === 'a1' ? { id, name: 'A1', partner: partnerOfAll, campaigns: 0 } : null),
      },
    },
  });
  return { ports, asked, events };
}

const partnerOfAll = { id: 'p1', name: 'Northwind Voice' };

describe('partners, accounts and campaigns', () => {
  it('are created, and record an event in their own scope', async () => {
    const { ports, asked, events } = createPorts();
    const created = [
      await createPartner(ports, operator, 'P'),
      await createAccount(ports, operator, 'A', 'p1'),
      await createCampaign(ports, operator, 'C', 'a1'),
    ];
    expect(created).to.deep.equal([
      { id: 'id1', name: 'P', accounts: 0 },
      { id: 'id3', name: 'A', partner: partnerOfAll, campaigns: 0 },
      { id: 'id5', name: 'C', account: { id: 'a1', name: 'A1' }, partner: partnerOfAll, settings: {} },
    ]);
    expect(asked).to.deep.equal([
      { id: 'id1', name: 'P' },
      { id: 'id3', name: 'A', partnerId: 'p1' },
      { id: 'id5', name: 'C', accountId: 'a1' },
    ]);
    expect(
      events.map(({ action, subject, owningScope, actor, address }) => ({ action, subject, owningScope, actor, address })),
    ).to.deep.equal([
      {
        action: 'partner.added',
        subject: { kind: 'partner', id: 'id1', name: 'P' },
        owningScope: { accountId: null, partnerId: 'id1' },
        actor: null,
        address: 'local',
      },
      {
        action: 'account.added',
        subject: { kind: 'account', id: 'id3', name: 'A' },
        owningScope: { accountId: 'id3', partnerId: 'p1' },
        actor: null,
        address: 'local',
      },
      {
        action: 'campaign.added',
        subject: { kind: 'campaign', id: 'id5', name: 'C' },
        owningScope: { accountId: 'a1', partnerId: 'p1' },
        actor: null,
        address: 'local',
      },
    ]);
  });

  it('are created only under a partner or account that exists', async () => {
    expect(await readProblem(createCampaign(createPorts().ports, operator, 'C', 'a9'))).to.equal(
      "invalid at accountId: This account doesn't exist, or you don't have access to it.",
    );
  });

  const always = { from: null, before: null };
  const everything = { at: always, actor: null, action: null, subject: null };

  it("are listed in the viewer's scope", async () => {
    const { ports, asked } = createPorts();
    const filter = { search: 'x', cursor: null };
    await listAccounts(ports, partner, filter);
    await listCampaigns(ports, account, filter);
    await listActivity(ports, staff, everything, 'cursor');
    expect(asked).to.deep.equal([
      { kind: 'partner', partnerId: 'p1' },
      filter,
      501,
      { kind: 'account', accountId: 'a1' },
      filter,
      501,
      { kind: 'service' },
      everything,
      'cursor',
      51,
    ]);
  });

  it('have a paged list of events', async () => {
    const event = auditEvent(fakePorts(), operator.actor, 'partner.added', { kind: 'partner', id: 'p', name: 'P' }, null);
    const list = async () => Array.from({ length: 51 }, (_, n) => ({ ...event, actor: null, id: `e${n}` }));
    const count = async () => 10_001;
    const { nextCursor, total, totalIsMore } = await listActivity(
      fakePorts({ stores: { activity: { list, count } } }),
      staff,
      everything,
      null,
    );
    expect(nextCursor).to.equal('e49');
    expect(total).to.equal(10_000);
    expect(totalIsMore).to.equal(true);
  });

  it('can be searched only by staff, with at most fifty results', async () => {
    const { ports, asked } = createPorts();
    await searchTenancies(ports, staff, 'clinic');
    expect(asked).to.deep.equal(['clinic', 50]);
    expect(await readProblem(searchTenancies(ports, partner, ''))).to.equal(
      'forbidden: Only service staff can select an account or partner.',
    );
  });
});

describe('an event', () => {
  it('records who did what, when and from where', () => {
    const ports = fakePorts();
    const subject = { kind: 'user', id: 'u', name: 'U' } as const;
    expect(auditEvent(ports, { who: staff, address: '192.0.2.1' }, 'user.deleted', subject, null)).to.deep.equal({
      ...{ id: 'id1', at: ports.clock.now(), actor: { id: 'stan', name: 'Stan Staff' }, action: 'user.deleted', subject },
      ...{ owningScope: null, address: '192.0.2.1' },
    });
  });
});

describe("a chart's days", () => {
  const days = ['2026-11-20', '2026-11-21'].map((day) => ({ day, from: at(`${day}T00:00:00Z`) }));
  const count = (instant: string) => ({ quarterAt: at(instant) });

  it("count their own events, and today's count also includes events from a clock that was ahead", () => {
    const [before, first, last, ahead] = [
      '2026-11-19T23:45:00Z',
      '2026-11-20T00:00:00Z',
      '2026-11-20T23:45:00Z',
      '2026-11-29T00:00:00Z',
    ].map(count);
    if (!before || !first || !last || !ahead) throw new Error('There must be four counts.');
    expect(groupByDay(days, [before, first, last, ahead])).to.deep.equal([
      { day: '2026-11-20', counts: [first, last] },
      { day: '2026-11-21', counts: [ahead] },
    ]);
  });

  it('start at the first instant of the first day', () => {
    expect([firstDayStart(days), firstDayStart([])]).to.deep.equal([days[0]?.from, 0]);
  });
});

describe('a problem', () => {
  it('is an error with the status of its code, and with a cause for the log', () => {
    const cause = new Error('The disk is full.');
    const problem = new Problem('unavailable', 'Try again.', { cause, retryAfter: 2 });
    expect(problem).to.include({ name: 'Problem', message: 'Try again.', code: 'unavailable', status: 503, cause, retryAfter: 2 });
    expect([problem.errors, problem.allow, new Problem('not-found', '').status]).to.deep.equal([undefined, undefined, 404]);
  });
});

describe("an error's code", () => {
  for (const [what, error, code] of [
    ['a system error', Object.assign(new Error(), { code: 'ENOENT' }), 'ENOENT'],
    ['an error with a numeric code', Object.assign(new Error(), { code: 5 }), ''],
    ['an error without a code', new Error(), ''],
    ["a value that isn't an error", { code: 'ENOENT' }, ''],
  ] as const) {
    it(`is ${JSON.stringify(code)} for ${what}`, () => expect(errorCode(error)).to.equal(code));
  }
});
