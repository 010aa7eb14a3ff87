import { callStateLabels } from '#contract/calls/states.ts';
import type { CallsView, CallView, DialerTroubleView } from '#contract/console/calls.ts';
import { timestamp } from '#contract/text/text.ts';
import * as domain from '../../domain/calls/call-list.ts';
import { instantRange } from '../../domain/calls/days.ts';
import { findDialerTrouble } from '../../domain/calls/dialing.ts';
import type { Millis } from '../../domain/instant.ts';
import type { Viewer } from '../../domain/model.ts';
import type { CallFilter, ListedCall, Ports } from '../../domain/ports.ts';
import { getCallZones } from '../../domain/protection/judge.ts';
import type { Handler, Request } from '../middleware/context.ts';
import { sendCsv, zonedTimestamp } from './csv.ts';
import { ownerView } from './people.ts';

export const listCalls: Handler<'listCalls'> = async (request) => list(request, request.params.id);

export const listAllCalls: Handler<'listAllCalls'> = async (request) => list(request, null);

async function list({ takeTurn, ports, viewer, query }: Request<'listAllCalls'>, campaignId: string | null): Promise<CallsView> {
  const request = { campaignId, cursor: query.cursor, filter: toFilter(ports, query) };
  const { items, nextCursor, searchedBackTo, total, totalIsMore } = await takeTurn((turn) =>
    domain.listCalls(ports, viewer, request, turn),
  );
  return {
    calls: items.map((call) => callView(call, viewer)),
    nextCursor,
    ...(searchedBackTo && { searchedBackTo: timestamp(searchedBackTo) }),
    ...{ total, totalIsMore },
  };
}

export const exportCalls: Handler<'exportCalls'> = (request) => exportCsv(request, request.params.id);

export const exportAllCalls: Handler<'exportAllCalls'> = (request) => exportCsv(request, null);

function exportCsv({ ctx, deps, takeTurn, ports, query }: Request<'exportAllCalls'>, campaignId: string | null): Promise<void> {
  const request = { campaignId, filter: toFilter(ports, query) };
  return sendCsv(ctx, deps, {
    list: 'calls',
    takeTurn,
    days: query,
    head: [
      ...['Campaign', 'Request ID', 'Contact ID', 'Contact', 'Phone', 'Outcome', 'Detail', 'Simulated', 'Key'],
      ...['Placed', 'Held until', 'Dialed', 'Ended', 'Seconds', 'Answered by'],
    ],
    ...(campaignId !== null && { nameSubject: ({ rows: [row] }) => row?.[0] }),
    async read(viewer, cursor, turn) {
      const { items, nextCursor } = await domain.findCallsToExport(ports, viewer, { ...request, cursor }, turn);
      return { rows: items.map((call) => csvCells(call, query.timeZone)), nextCursor };
    },
  });
}

function csvCells(call: ListedCall, timeZone: string): string[] {
  const { dialedAt, endedAt } = call;
  // A call that lapses doesn't leave then.
  const heldUntil = call.lapses ? null : call.heldUntil;
  const show = (at: Millis | null) => (at === null ? '' : zonedTimestamp(at, timeZone));
  const seconds = dialedAt && endedAt ? Math.round(Math.max(0, endedAt - dialedAt) / 1_000) : '';
  return [
    ...[call.campaign.name, call.requestId, call.contactId, call.name ?? '', call.phone ?? '', callStateLabels[call.state]],
    ...[call.detail ?? '', call.isSimulated ? 'Simulated' : '', call.apiKey?.name ?? '', show(call.placedAt)],
    ...[show(heldUntil), show(dialedAt), show(endedAt), String(seconds), call.answeredBy ?? ''],
  ];
}

export const showCall: Handler<'showCall'> = async ({ ports, viewer, params }) => {
  const { call, ...details } = await domain.showCall(ports, viewer, params.id, params.contactId);
  const { variables, notBefore, notAfter, durationSeconds, attempts, firstAttemptAt, nextAttemptAt, toldLateAt } = details;
  return {
    call: callView(call, viewer),
    ...{ timeZone: call.timeZone, variables, durationSeconds, attempts },
    notBefore: notBefore && timestamp(notBefore),
    notAfter: notAfter && timestamp(notAfter),
    firstAttemptAt: firstAttemptAt && timestamp(firstAttemptAt),
    nextAttemptAt: nextAttemptAt && timestamp(nextAttemptAt),
    toldLateAt: toldLateAt && timestamp(toldLateAt),
  };
};

export const summarizeCalls: Handler<'summarizeCalls'> = async ({ takeTurn, ports, viewer, params, query }) => {
  const request = { days: query, filter: toFilter(ports, query) };
  const { days, countedBackTo } = await takeTurn((turn) => domain.summarizeCalls(ports, viewer, params.id, request, turn));
  return { days, ...countedView(countedBackTo), dialerTrouble: await troubleView(ports) };
};

export const summarizeAllCalls: Handler<'summarizeAllCalls'> = async ({ takeTurn, ports, viewer, query }) => {
  const page = { search: query.campaignSearch, cursor: query.cursor };
  const request = { days: query, filter: toFilter(ports, query) };
  const { days, countedBackTo } = await takeTurn((turn) => domain.summarizeAllCalls(ports, viewer, page, request, turn));
  return { days, ...countedView(countedBackTo), dialerTrouble: await troubleView(ports) };
};

function toFilter({ randomness }: Ports, query: Request<'exportCalls'>['query']): CallFilter {
  const { state, apiKey = null, search } = query;
  return { placed: instantRange(randomness, query), states: state, apiKey, search };
}

function countedView(countedBackTo: Millis | null) {
  return countedBackTo && { countedBackTo: timestamp(countedBackTo) };
}

async function troubleView(ports: Ports): Promise<DialerTroubleView> {
  const trouble = await findDialerTrouble(ports);
  return trouble && { since: timestamp(trouble.since), reason: trouble.reason };
}

function callView(call: ListedCall, viewer: Viewer): CallView {
  return {
    requestId: call.requestId,
    contactId: call.contactId,
    contact: { phone: call.phone, name: call.name },
    state: call.state,
    detail: call.detail,
    placedAt: timestamp(call.placedAt),
    dialedAt: call.dialedAt && timestamp(call.dialedAt),
    endedAt: call.endedAt && timestamp(call.endedAt),
    apiKey: call.apiKey && { id: call.apiKey.id, name: call.apiKey.name, owner: ownerView(call.apiKey.creator, viewer) },
    simulated: call.isSimulated,
    heldUntil: call.heldUntil && timestamp(call.heldUntil),
    heldFor: call.heldFor,
    ...(call.lapses && { lapses: true }),
    ...(call.lastCalledAt && { lastCalledAt: timestamp(call.lastCalledAt) }),
    heldZone: call.heldUntil === null ? null : findZone(call),
    answeredBy: call.answeredBy,
    campaign: call.campaign,
  };
}

/** Returns the time zone of a contact; null unless exactly one is possible. */
function findZone({ phone, timeZone }: ListedCall): string | null {
  const [zone, ...others] = phone === null ? [] : getCallZones({ phone, timeZone });
  return zone === undefined || others.length > 0 ? null : zone;
}
