import { doNotCallHead } from '#contract/files/table.ts';
import { limits } from '#contract/limits.ts';
import type { StopView } from '#contract/protection/dialing.ts';
import { type DoNotCallEntryView, doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { timestamp } from '#contract/text/text.ts';
import * as stops from '../../domain/calls/stops.ts';
import { scopeFor } from '../../domain/directory/scope.ts';
import type { Viewer } from '../../domain/model.ts';
import type { DialingStop, DoNotCallEntry } from '../../domain/ports.ts';
import * as list from '../../domain/protection/do-not-call.ts';
import * as rules from '../../domain/protection/rules.ts';
import type { Handler } from '../middleware/context.ts';
import { sendCsv } from './csv.ts';

export const listDoNotCall: Handler<'listDoNotCall'> = async ({ ports, viewer, query }) => {
  const { items, ...page } = await list.listNumbers(ports, scopeFor(viewer).campaigns, query.search, query.cursor);
  return { entries: items.map(entryView), ...page };
};

export const addDoNotCall: Handler<'addDoNotCall'> = async ({ ports, caller, body }) => list.addNumbers(ports, caller, body);

export const liftDoNotCall: Handler<'liftDoNotCall'> = ({ ports, caller, params, body }) =>
  list.liftNumber(ports, caller, params.id, body.reason);

export const exportDoNotCall: Handler<'exportDoNotCall'> = async ({ ctx, deps, takeTurn, ports, query }) => {
  await sendCsv(ctx, deps, {
    list: 'do-not-call',
    takeTurn,
    days: { timeZone: 'UTC' },
    head: doNotCallHead,
    async read(viewer, cursor) {
      const { items, nextCursor } = await list.findNumbers(ports, scopeFor(viewer).campaigns, query.search, cursor, limits.exportPage);
      return { rows: items.map(csvCells), nextCursor };
    },
  });
};

function csvCells(entry: DoNotCallEntry): string[] {
  const { phone, scope, reason, note, source, createdBy, createdAt, endsAt } = entry;
  return [
    ...[phone, scope.name, doNotCallReasonLabels[reason], note ?? '', source, createdBy?.name ?? ''],
    ...[timestamp(createdAt), endsAt ? timestamp(endsAt) : ''],
  ];
}

export const showCallingHours: Handler<'showCallingHours'> = ({ ports, viewer, query }) => rules.showHours(ports, viewer, query);

export const setCallingHours: Handler<'setCallingHours'> = ({ ports, caller, query, body }) =>
  rules.setHours(ports, caller, query, body.rules, body.version);

export const showNumbers: Handler<'showNumbers'> = ({ ports, viewer, query }) => rules.showNumberRules(ports, viewer, query);

export const setNumbers: Handler<'setNumbers'> = ({ ports, caller, query, body: { version, ...change } }) =>
  rules.setNumberRules(ports, caller, query, change, version);

export const stopDialing: Handler<'stopDialing'> = async ({ ctx, ports, viewer, caller, takeTurn, body }) => {
  // A provider may take ten seconds, and the user may have to stop something else meanwhile.
  const cancelQueuedCalls = body.cancelQueuedCalls && 'soon';
  const stopping = takeTurn(({ rest }) => stops.stopDialing(ports, caller, { ...body, cancelQueuedCalls }, rest));
  const { stop, isNew, queuedCalls, withProvider } = await stopping;
  ctx.state.isRepeated = !isNew;
  return { stop: stopView(viewer, stop), queuedCalls, withProvider };
};

export const listStops: Handler<'listStops'> = async ({ ports, viewer }) => ({
  stops: (await stops.listStops(ports, viewer)).map((stop) => stopView(viewer, stop)),
});

export const showStop: Handler<'showStop'> = async ({ ports, viewer, params }) => {
  const { stop, ...counts } = await stops.showStop(ports, viewer, params.id);
  return { stop: stopView(viewer, stop), ...counts };
};

export const resumeDialing: Handler<'resumeDialing'> = ({ ports, caller, params }) => stops.resumeDialing(ports, caller, params.id);

function stopView(viewer: Viewer, stop: DialingStop): StopView {
  const { id, scope, target, at, by, reason } = stop;
  return { id, scope, target, at: timestamp(at), by, reason, mayResume: stops.mayResume(viewer, stop) };
}

export const showPace: Handler<'showPace'> = ({ ports, viewer, query }) => rules.showPace(ports, viewer, query);

export const setPace: Handler<'setPace'> = ({ ports, caller, query, body: { version, ...pace } }) =>
  rules.setPace(ports, caller, query, pace, version);

export const showContactLimits: Handler<'showContactLimits'> = ({ ports, viewer, query }) => rules.showContactLimits(ports, viewer, query);

export const setContactLimits: Handler<'setContactLimits'> = ({ ports, caller, query, body }) =>
  rules.setContactLimits(ports, caller, query, body.limits, body.version);

export const showOptOuts: Handler<'showOptOuts'> = async ({ ports, viewer, params }) => ({
  listedFor: await rules.showOptOuts(ports, viewer, params.id),
});

export const setOptOuts: Handler<'setOptOuts'> = async ({ ports, caller, params, body }) => {
  await rules.setOptOuts(ports, caller, params.id, body.listedFor);
  return body;
};

const maxNamedZones = 20;

export const checkNumber: Handler<'checkNumber'> = async ({ ports, viewer, body }) => {
  const { zones, entries, opensAt, limitsFrom, lastCalledAt, ...number } = await rules.checkNumber(ports, viewer, body);
  return {
    ...number,
    ...{ allowed: number.reasons.length === 0, zones: zones.length, zoneNames: zones.slice(0, maxNamedZones) },
    entries: entries.map(entryView),
    ...(opensAt && { opensAt: timestamp(opensAt) }),
    ...(limitsFrom && { limitsFrom }),
    ...(lastCalledAt && { lastCalledAt: timestamp(lastCalledAt) }),
  };
};

function entryView({ createdAt, endsAt, ...entry }: DoNotCallEntry): DoNotCallEntryView {
  return { ...entry, createdAt: timestamp(createdAt), endsAt: endsAt && timestamp(endsAt) };
}
