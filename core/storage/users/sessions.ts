import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { SignInVersion, Tenancy } from '../../domain/model.ts';
import type { NewSession, SessionStore } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { type Lanes, required } from '../engine/database.ts';
import { rejectOrphan } from '../engine/errors.ts';
import type { SessionRow, UserRow } from '../engine/tables.ts';
import { useUp } from './second-factors.ts';
import { type NamedUserRow, selectUsers, toUser } from './users.ts';

type FoundRow = NamedUserRow &
  Pick<SessionRow, 'tenancy_kind' | 'tenancy_id' | 'started_at' | 'last_seen_at' | 'issuer' | 'half_open_until' | 'began_with_link'> &
  Pick<UserRow, 'password_expires_at' | 'sign_in_version'> & {
    confirmed_at: Millis | null;
    tenancy_name: string | null;
    tenancy_partner_id: string | null;
    tenancy_partner_name: string | null;
  };

/** How many open sessions a user can have, and how many half-open ones. */
export const maxSessions = 300;

/** Stores sessions. Stores only digests of their IDs, so that no one can use a session from a copy of the table. */
export function sessionStore({ console: { read, write }, background }: Lanes): SessionStore {
  return {
    async start(session, version, event) {
      const starting = write.transaction(async (trx) => {
        if (!(await lockUnchanged(trx, session.userId, version))) return false;
        await insertSession(trx, session);
        if (event) await recordAudit(trx, event);
        return true;
      });
      return starting.catch(rejectOrphan);
    },

    async startLinked(session, version, { issuer, subject }, event) {
      const starting = write.transaction(async (trx) => {
        const { userId } = session;
        const user = await lockUnchanged(trx, userId, version);
        // Lock the link, so that unlinking the user either prevents this session or ends it.
        const link = await trx('oidc_links').where({ user_id: userId, issuer, subject }).forUpdate().first('linked_at');
        if (!user || !link) return false;
        await insertSession(trx, session, { issuer, began_with_link: (user.last_sign_in_at ?? 0) < link.linked_at ? 1 : null });
        await recordAudit(trx, event);
        return true;
      });
      return starting.catch(rejectOrphan);
    },

    async finish(halfOpen, session, code, events) {
      return write.transaction(async (trx) => {
        const { userId, at } = session;
        // The half-open session ends if the way in which the user signs in changes. This lock prevents that until the transaction ends.
        if ((await trx('users').where({ id: userId, disabled_at: null }).forUpdate().first('id')) === undefined) return false;
        const waiting = trx('sessions').where({ id: halfOpen, user_id: userId }).where('half_open_until', '>=', at);
        if ((await waiting.first('id')) === undefined || !(await useUp(trx, userId, code))) return false;
        await trx('sessions').where({ id: halfOpen }).delete();
        await insertSession(trx, session);
        for (const event of events) await recordAudit(trx, event);
        return true;
      });
    },

    async find(id) {
      const [row]: FoundRow[] = await selectUsers(read)
        .join('sessions as s', 's.user_id', 'u.id')
        .leftJoin('accounts as ta', (on) => on.on('ta.id', 's.tenancy_id').andOnVal('s.tenancy_kind', 'account'))
        .leftJoin('partners as tap', 'tap.id', 'ta.partner_id')
        .leftJoin('partners as tp', (on) => on.on('tp.id', 's.tenancy_id').andOnVal('s.tenancy_kind', 'partner'))
        .leftJoin('second_factors as sf', 'sf.user_id', 'u.id')
        .select('u.password_expires_at', 'u.sign_in_version', 's.tenancy_kind', 's.started_at', 's.last_seen_at', 's.issuer')
        .select('s.half_open_until', 's.began_with_link', 'sf.confirmed_at')
        .select({
          tenancy_id: read.raw('coalesce(ta.id, tp.id)'),
          tenancy_name: read.raw('coalesce(ta.name, tp.name)'),
          tenancy_partner_id: read.raw('coalesce(ta.partner_id, tp.id)'),
          tenancy_partner_name: read.raw('coalesce(tap.name, tp.name)'),
        })
        .where('s.id', id);
      if (!row) return null;
      return {
        user: toUser(row),
        // Ignore the selected tenancy of a user who is no longer staff.
        tenancy: row.user_type === 'staff' ? toTenancy(row) : null,
        // Someone who has signed in with the identity provider doesn't need to choose a password.
        passwordChangeDue: row.issuer === null && row.password_expires_at !== null,
        issuer: row.issuer,
        beganWithLink: row.began_with_link !== null,
        hasSecondFactor: row.confirmed_at !== null,
        signInVersion: row.sign_in_version,
        halfOpenUntil: row.half_open_until,
        startedAt: row.started_at,
        lastSeenAt: row.last_seen_at,
      };
    },

    async touch(id, at) {
      await write('sessions').where({ id }).update({ last_seen_at: at });
    },

    async selectTenancy(id, tenancy) {
      const chosen = { tenancy_kind: tenancy?.kind ?? null, tenancy_id: tenancy?.id ?? null };
      return (await write('sessions').where({ id }).update(chosen)) > 0;
    },

    async end(id, event) {
      return write.transaction(async (trx) => {
        const deleted = await trx('sessions').where({ id }).delete();
        if (deleted > 0) await recordAudit(trx, event);
        return deleted > 0;
      });
    },

    endAll: (event) => write.transaction((trx) => recordAudit(trx, event)),

    async sweep({ startedAfter, seenAfter, before, now }) {
      await background
        .write('sessions')
        .whereNotBetween('started_at', [startedAfter, before])
        .orWhereNotBetween('last_seen_at', [seenAfter, before])
        .orWhere('half_open_until', '<', now)
        .delete();
    },

    async endDisallowed({ password, issuer }) {
      const disallowed = background.write('sessions').where((other) => {
        other.whereNotNull('issuer');
        if (issuer !== null) other.whereNot({ issuer });
      });
      await (password ? disallowed : disallowed.orWhereNull('issuer')).delete();
    },
  };
}

/** Locks the user, unless the way in which they sign in has changed since it was checked, or they're disabled. */
function lockUnchanged(trx: Knex.Transaction, id: string, version: SignInVersion): Promise<Pick<UserRow, 'last_sign_in_at'> | undefined> {
  return trx('users').where({ id, sign_in_version: version, disabled_at: null }).forUpdate().first('last_sign_in_at');
}

/**
 * Inserts a session. If it's open, records that the user has signed in. If there are too many sessions of the same kind, ends the user's
 * least recently used ones, because a change that ends millions, such as disabling the user, would time out.
 */
async function insertSession(trx: Knex.Transaction, session: NewSession, origin: Partial<SessionRow> = {}): Promise<void> {
  const { id, userId, at, halfOpenUntil } = session;
  const times = { started_at: at, last_seen_at: at, half_open_until: halfOpenUntil };
  await trx('sessions').insert({ id, user_id: userId, ...times, ...origin });
  const others = trx('sessions').where({ user_id: userId }).whereNot({ id });
  if (halfOpenUntil === null) {
    await trx('users').where({ id: userId }).update({ last_sign_in_at: at });
    others.whereNull('half_open_until');
  } else others.whereNotNull('half_open_until');
  const excess = others.orderBy('last_seen_at', 'desc').offset(maxSessions - 1);
  await trx('sessions').whereIn('id', excess.select('id')).delete();
}

function toTenancy({ tenancy_kind, tenancy_id, ...row }: FoundRow): Tenancy | null {
  if (tenancy_kind === null || tenancy_id === null) return null;
  return {
    kind: tenancy_kind,
    id: tenancy_id,
    name: required(row.tenancy_name, 'tenancy_name'),
    partnerId: required(row.tenancy_partner_id, 'tenancy_partner_id'),
    partnerName: required(row.tenancy_partner_name, 'tenancy_partner_name'),
  };
}
