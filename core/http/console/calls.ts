import {
  type AllCallsSummaryView,
  allCallsSummaryQuerySchema,
  type CallDetailsView,
  type CallsSummaryView,
  type CallsView,
  callsQuerySchema,
  chartQuerySchema,
  type DialerTroubleView,
} from '#contract/console.ts';
import { timestamp } from '#contract/text.ts';
import { listCalls, showCall, summarizeAllCalls, summarizeCalls } from '../../domain/call-list.ts';
import { findDialerTrouble } from '../../domain/dialer-trouble.ts';
import type { Ports } from '../../domain/ports.ts';
import { readQuery } from '../body.ts';
import { type Context, type HttpDeps, idOf, turnOf } from '../context.ts';
import { viewerOf } from '../session.ts';
import { callDetailsView, callView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { state = null, search, cursor = null } = readQuery(ctx, callsQuerySchema);
  const { items, nextCursor, searchedBackTo } = await listCalls(ports, viewer, idOf(ctx), { state, search, cursor }, turnOf(ctx));
  const view: CallsView = {
    calls: items.map((call) => callView(call, viewer)),
    nextCursor,
    ...(searchedBackTo && { searchedBackTo: timestamp(searchedBackTo) }),
  };
  ctx.body = view;
}

export async function show(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const view: CallDetailsView = callDetailsView(await showCall(ports, viewer, idOf(ctx), idOf(ctx, 'contactId')), viewer);
  ctx.body = view;
}

export async function summarize(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { timeZone } = readQuery(ctx, chartQuerySchema);
  const days = await summarizeCalls(ports, viewerOf(ctx), idOf(ctx), timeZone);
  const view: CallsSummaryView = { days, dialerTrouble: await troubleView(ports) };
  ctx.body = view;
}

export async function summarizeAll(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { timeZone, search, cursor = null } = readQuery(ctx, allCallsSummaryQuerySchema);
  const days = await summarizeAllCalls(ports, viewerOf(ctx), timeZone, { search, cursor });
  const view: AllCallsSummaryView = { days, dialerTrouble: await troubleView(ports) };
  ctx.body = view;
}

async function troubleView(ports: Ports): Promise<DialerTroubleView> {
  const trouble = await findDialerTrouble(ports);
  return trouble && { since: timestamp(trouble.since), reason: trouble.reason };
}
