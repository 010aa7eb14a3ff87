import { limits } from '#contract/limits.ts';
import type { ContactLimitsView, Pace, PaceView, StopView } from '#contract/protection/dialing.ts';
import { type DoNotCallEntryView, doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import type { CallingHoursView, NumbersView } from '#contract/protection/protection.ts';
import { timestamp } from '#contract/text/text.ts';
import * as stops from '../../domain/calls/stops.ts';
import { scopeFor } from '../../domain/directory/scope.ts';
import type { DialingStop, DoNotCallEntry, Viewer } from '../../domain/model.ts';
import * as list from '../../domain/protection/do-not-call.ts';
import * as rules from '../../domain/protection/rules.ts';
import { sendCsv } from './csv.ts';
import type { Handler } from './request.ts';

export const listDoNotCall: Handler<'listDoNotCall'> = async ({ ports, viewer, query }) => {
  const { items, ...page } = await list.listNumbers(ports, scopeFor(viewer).campaigns, query.search, query.cursor);
  return { entries: items.map(entryView), ...page };
};

export const addDoNotCall: Handler<'addDoNotCall'> = async ({ ports, caller, body }) => list.addNumbers(ports, caller, body);

export const liftDoNotCall: Handler<'liftDoNotCall'> = async ({ ports, caller, params, body }) => {
  await list.liftNumber(ports, caller, params.id, body.reason);
};

export const exportDoNotCall: Handler<'exportDoNotCall'> = async ({ ctx, deps, takeTurn, ports, query }) => {
  await sendCsv(ctx, deps, {
    list: 'do-not-call',
    takeTurn,
    days: { timeZone: 'UTC' },
    head: ['Number', 'For', 'Reason', 'Note', 'Source', 'Added by', 'Added', 'Ends'],
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

export const showCallingHours: Handler<'showCallingHours'> = async ({ ports, viewer, query }) =>
  hoursView(await rules.showHours(ports, viewer, query));

export const setCallingHours: Handler<'setCallingHours'> = async ({ ports, caller, query, body }) =>
  hoursView(await rules.setHours(ports, caller, query, body.rules, body.version));

export const showNumbers: Handler<'showNumbers'> = async ({ ports, viewer, query }) =>
  numbersView(await rules.showNumberRules(ports, viewer, query));

export const setNumbers: Handler<'setNumbers'> = async ({ ports, caller, query, body }) => {
  const { version, ...change } = body;
  return numbersView(await rules.setNumberRules(ports, caller, query, change, version));
};

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

export const showPace: Handler<'showPace'> = ({ ports, viewer, query }) => rules.showPace(ports, viewer, query).then(paceView);

export const setPace: Handler<'setPace'> = async ({ ports, caller, query, body }) => {
  const { version, ...pace } = body;
  return paceView(await rules.setPace(ports, caller, query, pace, version));
};

function paceView(pace: Pace): PaceView {
  return { ...pace, version: rules.paceVersion({ pace }) };
}

export const showContactLimits: Handler<'showContactLimits'> = async ({ ports, viewer, query }) =>
  contactLimitsView(await rules.showContactLimits(ports, viewer, query));

export const setContactLimits: Handler<'setContactLimits'> = async ({ ports, caller, query, body }) =>
  contactLimitsView(await rules.setContactLimits(ports, caller, query, body.limits, body.version));

function contactLimitsView(shown: Awaited<ReturnType<typeof rules.showContactLimits>>): ContactLimitsView {
  return { ...shown, version: rules.contactLimitsVersion({ contactLimits: shown.limits }) };
}

export const showOptOuts: Handler<'showOptOuts'> = async ({ ports, viewer, params }) => ({
  listedFor: await rules.showOptOuts(ports, viewer, params.id),
});

export const setOptOuts: Handler<'setOptOuts'> = async ({ ports, caller, params, body }) => {
  await rules.setOptOuts(ports, caller, params.id, body.listedFor);
  return body;
};

/** The maximum number of zones that a response names. */
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

function hoursView(shown: Awaited<ReturnType<typeof rules.showHours>>): CallingHoursView {
  return { ...shown, version: rules.hoursVersion({ hours: shown.rules }) };
}

function numbersView(shown: Awaited<ReturnType<typeof rules.showNumberRules>>): NumbersView {
  return { ...shown, version: rules.numbersVersion(shown) };
}

function entryView({ createdAt, endsAt, ...entry }: DoNotCallEntry): DoNotCallEntryView {
  return { ...entry, createdAt: timestamp(createdAt), endsAt: endsAt && timestamp(endsAt) };
}
