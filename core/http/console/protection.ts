import { limits } from '#contract/limits.ts';
import type { DoNotCallEntryView } from '#contract/protection/do-not-call.ts';
import { doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import type {
  AddedNumbersView,
  CallingHoursView,
  CheckedNumberView,
  DoNotCallView,
  NumbersView,
  OptOutsView,
} from '#contract/protection/protection.ts';
import { timestamp } from '#contract/text/text.ts';
import { scopeFor } from '../../domain/directory/scope.ts';
import type { DoNotCallEntry, RuleScope } from '../../domain/model.ts';
import * as list from '../../domain/protection/do-not-call.ts';
import * as rules from '../../domain/protection/rules.ts';
import { sendCsv } from './csv.ts';
import type { Request } from './request.ts';

export async function listDoNotCall({ ports, viewer, query }: Request<'listDoNotCall'>): Promise<DoNotCallView> {
  const { items, nextCursor } = await list.listNumbers(ports, scopeFor(viewer).campaigns, query.search, query.cursor);
  return { entries: items.map(entryView), nextCursor };
}

export async function addDoNotCall({ ports, caller, body }: Request<'addDoNotCall'>): Promise<AddedNumbersView> {
  return list.addNumbers(ports, caller, body);
}

export async function liftDoNotCall({ ports, caller, params, body }: Request<'liftDoNotCall'>): Promise<void> {
  await list.liftNumber(ports, caller, params.id, body.reason);
}

export async function exportDoNotCall({ ctx, deps, ports, query }: Request<'exportDoNotCall'>): Promise<void> {
  await sendCsv(ctx, deps, {
    list: 'do-not-call',
    days: { timeZone: 'UTC' },
    head: ['Number', 'For', 'Reason', 'Note', 'Source', 'Added by', 'Added', 'Ends'],
    async read(viewer, cursor) {
      const { items, nextCursor } = await list.listNumbers(ports, scopeFor(viewer).campaigns, query.search, cursor, limits.exportPage);
      return { rows: items.map(csvCells), nextCursor };
    },
  });
}

function csvCells(entry: DoNotCallEntry): string[] {
  const { phone, scope, reason, note, source, createdBy, createdAt, endsAt } = entry;
  return [
    ...[phone, scope.name, doNotCallReasonLabels[reason], note ?? '', source, createdBy?.name ?? ''],
    ...[timestamp(createdAt), endsAt ? timestamp(endsAt) : ''],
  ];
}

export async function showCallingHours({ ports, viewer, query }: Request<'showCallingHours'>): Promise<CallingHoursView> {
  return hoursView(await rules.showHours(ports, viewer, query));
}

export async function setCallingHours({ ports, caller, query, body }: Request<'setCallingHours'>): Promise<CallingHoursView> {
  return hoursView(await rules.setHours(ports, caller, query, body.rules, body.version));
}

export async function showNumbers({ ports, viewer, query }: Request<'showNumbers'>): Promise<NumbersView> {
  return numbersView(await rules.showNumberRules(ports, viewer, query));
}

export async function setNumbers({ ports, caller, query, body }: Request<'setNumbers'>): Promise<NumbersView> {
  const { version, ...change } = body;
  return numbersView(await rules.setNumberRules(ports, caller, query, change, version));
}

export async function showOptOuts({ ports, viewer, params }: Request<'showOptOuts'>): Promise<OptOutsView> {
  return { listedFor: await rules.showOptOuts(ports, viewer, params.id) };
}

export async function setOptOuts({ ports, caller, params, body }: Request<'setOptOuts'>): Promise<OptOutsView> {
  await rules.setOptOuts(ports, caller, params.id, body.listedFor);
  return body;
}

/** The maximum number of zones that a response names. */
const maxNamedZones = 20;

export async function checkNumber({ ports, viewer, body }: Request<'checkNumber'>): Promise<CheckedNumberView> {
  const { reasons, zones, entries, rules: deciding, rulesFrom, opensAt, ...number } = await rules.checkNumber(ports, viewer, body);
  return {
    ...number,
    ...{ allowed: reasons.length === 0, reasons, zones: zones.length, zoneNames: zones.slice(0, maxNamedZones) },
    ...{ entries: entries.map(entryView), rules: [...deciding], rulesFrom: rulesFrom && scopeView(rulesFrom) },
    ...(opensAt === null ? {} : { opensAt: timestamp(opensAt) }),
  };
}

function hoursView({ scope, rules: own, inherited }: rules.ScopeHours): CallingHoursView {
  return {
    scope: scopeView(scope),
    rules: [...own],
    version: rules.hoursVersion({ hours: own }),
    inherited: inherited && { from: scopeView(inherited.from), rules: [...inherited.rules] },
  };
}

function numbersView({ scope, ...numbers }: rules.ScopeNumbers): NumbersView {
  return { ...numbers, scope: scopeView(scope), version: rules.numbersVersion(numbers) };
}

function scopeView({ kind, id, name }: RuleScope) {
  return { kind, id, name };
}

function entryView({ createdAt, endsAt, ...entry }: DoNotCallEntry): DoNotCallEntryView {
  return { ...entry, createdAt: timestamp(createdAt), endsAt: endsAt && timestamp(endsAt) };
}
