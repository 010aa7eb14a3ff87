import type { DateTime } from 'luxon';
import type { z } from 'zod';
import { callStateLabels } from '#contract/calls/states.ts';
import {
  type AllCallsSummaryView,
  allCallsSummaryQuerySchema,
  type CallDetailsView,
  type CallsSummaryView,
  type CallsView,
  callsExportQuerySchema,
  callsQuerySchema,
  callsSummaryQuerySchema,
  type DialerTroubleView,
} from '#contract/console.ts';
import { timestamp } from '#contract/text/text.ts';
import { findCallsToExport, listCalls, showCall, summarizeAllCalls, summarizeCalls } from '../../domain/calls/call-list.ts';
import { instantRange } from '../../domain/calls/days.ts';
import { findDialerTrouble } from '../../domain/calls/dialer-trouble.ts';
import type { CallFilter, ListedCall } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { readQuery } from '../middleware/body.ts';
import { type Context, type HttpDeps, idOf, turnOf } from '../middleware/context.ts';
import { viewerOf } from '../middleware/session.ts';
import { callDetailsView, callView } from '../views.ts';
import { sendCsv } from './csv.ts';

/** The calls of a campaign or, where the path names none, of all in scope. */
export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const query = readQuery(ctx, callsQuerySchema);
  const wanted = { campaignId: campaignIdOf(ctx), cursor: query.cursor ?? null, filter: filterOf(ports, query) };
  const { items, nextCursor, searchedBackTo, total, totalIsMore } = await listCalls(ports, viewer, wanted, turnOf(ctx));
  const view: CallsView = {
    calls: items.map((call) => callView(call, viewer)),
    nextCursor,
    ...(searchedBackTo && { searchedBackTo: timestamp(searchedBackTo) }),
    ...{ total, totalIsMore },
  };
  ctx.body = view;
}

export async function exportCsv(ctx: Context, deps: HttpDeps): Promise<void> {
  const { ports } = deps;
  const query = readQuery(ctx, callsExportQuerySchema);
  const wanted = { campaignId: campaignIdOf(ctx), filter: filterOf(ports, query) };
  await sendCsv(ctx, deps, {
    list: 'calls',
    days: query,
    head: ['Campaign', 'Request ID', 'Contact', 'Phone', 'Outcome', 'Detail', 'Simulated', 'Key', 'Placed', 'Dialed', 'Ended', 'Seconds'],
    async read(viewer, cursor, turn) {
      const { items, nextCursor } = await findCallsToExport(ports, viewer, { ...wanted, cursor }, turn);
      return { rows: items.map(csvCells), nextCursor };
    },
  });
}

function csvCells(call: ListedCall): string[] {
  const { dialedAt, endedAt } = call;
  const seconds = dialedAt && endedAt ? Math.round(Math.max(0, endedAt.toMillis() - dialedAt.toMillis()) / 1_000) : '';
  return [
    ...[call.campaign.name, call.requestId, call.name ?? '', call.phone ?? '', callStateLabels[call.state], call.detail ?? ''],
    ...[call.isSimulated ? 'Simulated' : '', call.apiKey?.name ?? '', timestamp(call.placedAt)],
    ...[dialedAt ? timestamp(dialedAt) : '', endedAt ? timestamp(endedAt) : '', String(seconds)],
  ];
}

export async function show(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const view: CallDetailsView = callDetailsView(await showCall(ports, viewer, idOf(ctx), idOf(ctx, 'contactId')), viewer);
  ctx.body = view;
}

export async function summarize(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const query = readQuery(ctx, callsSummaryQuerySchema);
  const wanted = { days: query, filter: filterOf(ports, query) };
  const { days, countedBackTo } = await summarizeCalls(ports, viewerOf(ctx), idOf(ctx), wanted, turnOf(ctx));
  const view: CallsSummaryView = { days, ...countedView(countedBackTo), dialerTrouble: await troubleView(ports) };
  ctx.body = view;
}

export async function summarizeAll(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const query = readQuery(ctx, allCallsSummaryQuerySchema);
  const { search, cursor = null } = query;
  const wanted = { days: query, filter: filterOf(ports, { ...query, search: '' }) };
  const { days, countedBackTo } = await summarizeAllCalls(ports, viewerOf(ctx), { search, cursor }, wanted, turnOf(ctx));
  const view: AllCallsSummaryView = { days, ...countedView(countedBackTo), dialerTrouble: await troubleView(ports) };
  ctx.body = view;
}

/** Null where the path names none. */
function campaignIdOf(ctx: Context): string | null {
  return 'id' in (ctx['params'] ?? {}) ? idOf(ctx) : null;
}

function filterOf({ randomness }: Ports, query: z.output<typeof callsExportQuerySchema>): CallFilter {
  const { state, apiKey = null, search } = query;
  return { placed: instantRange(randomness, query), states: state, apiKey, search };
}

function countedView(countedBackTo: DateTime | null) {
  return countedBackTo && { countedBackTo: timestamp(countedBackTo) };
}

async function troubleView(ports: Ports): Promise<DialerTroubleView> {
  const trouble = await findDialerTrouble(ports);
  return trouble && { since: timestamp(trouble.since), reason: trouble.reason };
}
