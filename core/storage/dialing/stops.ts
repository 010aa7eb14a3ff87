import { setTimeout } from 'node:timers/promises';
import { dialingLimits } from '../../domain/calls/dialing.ts';
import { typesBelow } from '../../domain/calls/stops.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { DialingStop, ProtectionAccess, StopStore } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { recordAudit } from '../audit/audit.ts';
import { isInCampaigns } from '../directory/directory.ts';
import { queryCalls, sumOfCalls } from '../engine/call-lanes.ts';
import { always, type Condition, equal } from '../engine/conditions.ts';
import { awaitGone, type Lane, type Lanes, requireSeen } from '../engine/database.ts';
import type { DialingStopRow } from '../engine/tables.ts';
import { markChanged } from '../protection/rules.ts';
import { type Cancelling, cancelQueued, countLive, countUndialed, dialingSql, isAt, isInScope } from '../queue/queue.ts';

/** In ms: how long a stop waits for hand-offs. Each ends at most `dialingLimits.answer` after its claim, and then its result is saved. */
const patience = dialingLimits.answer.toMillis() + 250;
const pollEvery = 25;

export function stopStore({ console: database, background }: Lanes): StopStore {
  const { read, write } = database;

  return {
    async stop(stop, cancelling, event, rest) {
      const row = toRow(stop, cancelling !== false);
      const isNew = await write.transaction(async (trx) => {
        const added = await trx('dialing_stops').insert(row).onConflict('scope_id').ignore().returning('id');
        const there = () => trx('dialing_stops').where({ scope_id: row.scope_id });
        const { by_id, by_name, by_type, reason } = row;
        // Everyone who sees the stop has to know why someone else than its first user must resume it.
        const raise = { by_type, ...(reason !== null && { by_id, by_name, reason }) };
        const raised = added.length === 0 && (await there().whereIn('by_type', typesBelow(by_type)).update(raise)) > 0;
        if (added.length > 0 || cancelling !== false || raised) await recordAudit(trx, event);
        if (added.length === 0 && cancelling !== false) await there().update({ cancelling_since: stop.at });
        return added.length > 0;
      });
      await requireSeen(database);
      await awaitHandoffs(background, stop, rest);
      if (cancelling !== false) {
        const cancelling_since = await newestOf(background, stop);
        await write('dialing_stops').where({ scope_id: row.scope_id }).update({ cancelling_since });
        await cancelFor(background, { ...row, cancelling_since }, { isSoon: cancelling === 'soon' });
      }
      const [current = null] = isNew ? [stop] : await select(database, equal('s.scope_id', row.scope_id));
      return { stop: current, isNew };
    },

    async count(stop) {
      const scope = { scope: stop.scope, scopeId: stop.target?.id ?? '' };
      const live = sumOfCalls(database, (lane) => countLive(lane, isInScope(scope)));
      const [queuedCalls, withProvider] = await Promise.all([countUndialed(database, scope), live]);
      return { queuedCalls, withProvider };
    },

    list: (access) => select(database, appliesTo(access)),

    async resume(stop, event, cancelling) {
      const row = await read('dialing_stops').where({ id: stop.id }).first();
      // Calls that were to be cancelled mustn't leave instead.
      if (row?.cancelling_since != null && (await cancelFor(background, row, { isSoon: cancelling === 'soon' })) === false)
        throw stillCancelling();
      return write.transaction(async (trx) => {
        const ended = await trx('dialing_stops').where({ id: stop.id, by_type: stop.byType }).delete();
        if (ended === 0) return false;
        if (stop.scope === 'campaign' && stop.target && stop.owner) await markChanged(trx, stop.target.id, stop.owner.partnerId, event.id);
        await recordAudit(trx, event);
        return true;
      });
    },

    async cancelCallsOfStopped(signal) {
      let cancelled = 0;
      const rows: DialingStopRow[] = await background.read('dialing_stops').whereNotNull('cancelling_since');
      for (const row of rows) cancelled += Number(await cancelFor(background, row, { signal }));
      return cancelled;
    },
  };
}

function toRow(stop: DialingStop, cancelling: boolean): DialingStopRow {
  const { id, scope, target, owner, at, by, byType, reason } = stop;
  return {
    ...{ id, scope, scope_id: target?.id ?? '', account_id: owner?.accountId ?? null, partner_id: owner?.partnerId ?? null, at },
    ...{ by_id: by?.id ?? null, by_name: by?.name ?? null, by_type: byType, reason, cancelling_since: cancelling ? at : null },
  };
}

/** Builds the condition for the stops that apply to something in the viewer's reach. */
function appliesTo(access: ProtectionAccess): Condition {
  switch (access.kind) {
    case 'all':
      return always;
    case 'partner':
      return { sql: `s.scope = 'server' OR s.partner_id = ?`, values: [access.partnerId] };
    case 'account':
      return {
        sql: `s.scope = 'server' OR s.account_id = ? OR (s.scope = 'partner' AND s.partner_id = (SELECT partner_id FROM accounts WHERE id = ?))`,
        values: [access.accountId, access.accountId],
      };
  }
}

async function select({ query }: Lane, { sql, values }: Condition): Promise<DialingStop[]> {
  const rows = await query<Omit<DialingStopRow, 'cancelling_since'> & { target_name: string | null }>(
    `SELECT s.*, coalesce(p.name, a.name, c.name) AS target_name FROM dialing_stops s
     LEFT JOIN partners p ON p.id = s.scope_id LEFT JOIN accounts a ON a.id = s.scope_id LEFT JOIN campaigns c ON c.id = s.scope_id
     WHERE ${sql} ORDER BY s.id DESC`,
    values,
  );
  return rows.map((row) => ({
    ...{ id: row.id, scope: row.scope, at: row.at, byType: row.by_type, reason: row.reason },
    target: row.scope === 'server' ? null : { id: row.scope_id, name: row.target_name ?? '' },
    owner: row.partner_id === null ? null : { accountId: row.account_id, partnerId: row.partner_id },
    by: row.by_id === null ? null : { id: row.by_id, name: row.by_name ?? '' },
  }));
}

/** Waits until no call of the scope that was claimed before the stop may still be sent. The claims have ended. */
async function awaitHandoffs(
  database: Lane,
  { scope, target }: DialingStop,
  rest: (ms: number) => Promise<void> = setTimeout,
): Promise<void> {
  const { sql, values } = isInScope({ scope, scopeId: target?.id ?? '' });
  // Whether a lease has ended doesn't matter, because the core that claimed the call may have a different clock. A call in doubt that waits
  // for its next attempt has a detail, which claims remove.
  const under = `state = 'dialing' AND (${isAt('open')} OR (${isAt('doubt')} AND detail IS NULL)) AND ${sql}`;
  const find = async () => {
    const select = `SELECT contact_id, attempt FROM ${dialingSql(database)} WHERE ${under}`;
    const rows = await queryCalls<{ contact_id: string; attempt: number }>(database, select, values);
    return rows.map(({ contact_id, attempt }) => `${contact_id} ${attempt}`);
  };
  // What's left then belongs to a core that was killed or hangs, and can't begin a hand-off anymore: see `dialingLimits.start`.
  await awaitGone(find, patience, () => rest(pollEvery));
}

function stillCancelling(): Problem {
  const detail = 'The calls that were queued when dialing was stopped are still being cancelled. Resume again shortly.';
  return new Problem('unavailable', detail, { retryAfter: 5 });
}

/**
 * Returns the time of a stop or, if that's later, of the newest call that's there, because the clock of the core where a call was placed may
 * be ahead. Calls that are placed later aren't cancelled.
 */
async function newestOf(database: Lane, { id, scope, target, at }: DialingStop): Promise<Millis> {
  const targetId = target?.id ?? '';
  const scopes = {
    server: { kind: 'all' },
    partner: { kind: 'partner', partnerId: targetId },
    account: { kind: 'account', accountId: targetId },
    campaign: { kind: 'campaigns', ids: [targetId] },
  } as const;
  const { sql, values } = isInCampaigns(database, scopes[scope]);
  const rows = await queryCalls<{ newest: Millis | null }>(
    database,
    // IDs are in the order of their times, so these calls are newer than the stop.
    `SELECT max(placed_at) AS newest FROM calls WHERE ${sql} AND contact_id > ?`,
    [...values, id],
  );
  return instant(Math.max(at, ...rows.map(({ newest }) => Number(newest ?? 0))));
}

/**
 * Cancels the calls that were queued at the time of a stop.
 *
 * @returns the number of calls; false if there was no time for all of them
 */
async function cancelFor(database: Lane, row: DialingStopRow, how: Cancelling): Promise<number | false> {
  const { cancelling_since: at } = row;
  if (at === null) return 0;
  const calls = { scope: row.scope, scopeId: row.scope_id, placedUntil: at };
  const cancelled = await cancelQueued(database, calls, at, how);
  if (cancelled === false) return false;
  await database.write('dialing_stops').where({ scope_id: row.scope_id, cancelling_since: at }).update({ cancelling_since: null });
  return cancelled;
}
