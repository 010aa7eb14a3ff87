import { isExpired } from '#contract/expiry.ts';
import { initialStage } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import type { Digest, KeyLimits, NewCall } from '../../domain/model.ts';
import type { KeyedRequest } from '../../domain/ports.ts';
import type { BatchColumns, BatchRows, Database, Value } from '../engine/database.ts';
import { isAllowed, joinAuthorization } from '../keys/authorization.ts';
import { isJudgedByCurrentRules, isUnlisted, joinProtection, placingLists } from '../protection/listed.ts';

/** A request with the limits that it was checked against. */
export type Judged = KeyedRequest & { limits: KeyLimits | null };
/**
 * The result of checking a call: the version of the rules, the time from which they allow the call, and a version of the do-not-call lists
 * that doesn't contain its number.
 */
export type Verdict = { rulesVersion: number | null; heldUntil: Millis | null; unlistedAt: number | null };
export type Placing = Judged & { call: NewCall; verdict: Verdict };

export const requestColumns = { digest: 'text', campaign_id: 'text', at: 'bigint', limits_version: 'text' } as const;

export function requestRow({ digest, campaignId, at, limits }: Judged): Value[] {
  return [digest, campaignId, at, limits === null ? null : limits.version];
}

type Group = { first: Judged; at: Millis; isExpired: boolean; more: readonly Value[]; rows: Value[][] };

/**
 * Groups the requests of a batch that have the same key, campaign, limits and other values, because one lookup decides for all of them. The
 * columns of a group are `requestColumns`, the other values, and the rows.
 *
 * A group has the time of its latest request. That doesn't change the results of its earlier requests, because requests before and after
 * the key's expiry are in different groups.
 *
 * @param more returns the other values
 */
export function inGroups<Request extends Judged>(
  batch: readonly Request[],
  toRow: (request: Request) => Value[],
  more: (request: Request) => readonly Value[] = () => [],
): BatchRows {
  const byDigest = new Map<Digest, Group[]>();
  for (const request of batch) {
    const { digest, at } = request;
    const candidate = { first: request, at, isExpired: isExpired(request.key.expiresAt, at), more: more(request), rows: [] };
    const groups = byDigest.get(digest);
    let group = groups?.find((group) => isSameGroup(group, candidate));
    if (!group) {
      group = candidate;
      if (groups) groups.push(group);
      else byDigest.set(digest, [group]);
    }
    if (at > group.at) group.at = at;
    group.rows.push(toRow(request));
  }
  return [...byDigest.values()].flat().map(({ first, at, more, rows }) => [...requestRow({ ...first, at }), ...more, rows]);
}

function isSameGroup(a: Group, b: Group): boolean {
  return (
    a.first.campaignId === b.first.campaignId &&
    a.first.limits?.version === b.first.limits?.version &&
    a.isExpired === b.isExpired &&
    a.more.every((value, index) => value === b.more[index])
  );
}

/** The columns of a call that are set by the request. */
export const callColumns = {
  contact_id: 'text',
  request_id: 'text',
  phone: 'text',
  name: 'text',
  time_zone: 'text',
  variables: 'text',
  not_before: 'bigint',
  not_after: 'bigint',
} as const;

/** Returns a call's values in the order of `callColumns`. */
export function callRow(call: NewCall): Value[] {
  const variables = call.variables && variablesText(call.variables);
  return [call.contactId, call.requestId, call.phone, call.name, call.timeZone, variables, call.notBefore, call.notAfter];
}

/** Serializes variables, sorted by name, so that the same variables always have the same text. */
function variablesText(variables: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(variables).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The columns of a row to place. */
const placingColumns = { ...callColumns, placed_at: 'bigint', due_at: 'bigint', held_until: 'bigint' } as const;
const groupColumns = { ...requestColumns, rules_version: 'bigint', unlisted_at: 'bigint' } as const;

function placingRow({ at, call, verdict: { heldUntil } }: Placing): Value[] {
  const { notBefore } = call;
  return [...callRow(call), at, heldUntil ?? (notBefore !== null && notBefore > at ? notBefore : at), heldUntil];
}

/** Groups a batch into rows with `groupColumns`. @param more returns additional values that a group has in common */
export function placingGroups<Request extends Placing>(
  batch: readonly Request[],
  more: (request: Request) => readonly Value[] = () => [],
): BatchRows {
  return inGroups(batch, placingRow, (request) => [request.verdict.rulesVersion, request.verdict.unlistedAt, ...more(request)]);
}

export function groupColumnsWith(more: BatchColumns = {}): BatchColumns {
  return { ...groupColumns, ...more, rows: 'rows' };
}

/**
 * Builds the SQL that joins the calls to place, named `r`, with their keys and campaigns. Omits those that aren't allowed.
 *
 * @param groups the batch, from {@link placingGroups}
 * @param more additional columns to select
 */
export function callsToPlace(database: Database, groups: string, more: Readonly<Record<string, string>> = {}): string {
  const select = { api_key_id: 'k.id', campaign_id: 'c.id', account_id: 'c.account_id', ...placingLists, ...more };
  const from = `${groups} ${joinAuthorization(database)} ${joinProtection} WHERE ${isAllowed} AND ${isJudgedByCurrentRules}`;
  return `${database.rowsWithin({ select, from }, placingColumns, ['campaign_id', 'request_id'])} WHERE ${isUnlisted}`;
}

/** The columns of a new call, each with its SQL. */
export const newCall: Readonly<Record<string, string>> = {
  ...{ campaign_id: 'r.campaign_id', account_id: 'r.account_id', api_key_id: 'r.api_key_id', state: `'${initialStage}'` },
  ...Object.fromEntries(Object.keys(placingColumns).map((column) => [column, `r.${column}`])),
  response_held_until: 'r.held_until',
};

/** Returns a statement that inserts calls of keys without a daily call limit. */
export function insertStatement(database: Database) {
  return database.prepareChange(
    groupColumnsWith(),
    (groups) => `INSERT INTO calls (${Object.keys(newCall).join(', ')})
     SELECT ${Object.values(newCall).join(', ')} FROM ${callsToPlace(database, groups)}
     ON CONFLICT (campaign_id, request_id) DO NOTHING`,
  );
}
