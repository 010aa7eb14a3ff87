import type { Database, Dialect } from '../engine/database.ts';

/**
 * The only place that decides what a key may do. In SQL, since the statement that places or cancels a call must itself check it: a revoke, a
 * deletion or a move that was committed before the statement started wins, in every process. No cache decides.
 *
 * `r` is a request of the batch (`digest`, `campaign_id`, `at`), `k` its key, `u` the key's creator as they are now, `c` the campaign, `a` the
 * campaign's account.
 */

/** The key has not expired, and its creator is not disabled. A revoked key is refused because it has no row in `api_keys`: a revoke deletes it. */
export const keyIsActive = `((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)`;

/**
 * The key of an account user has access to the campaigns of the account; that of a partner user, tied or not, to those of all accounts of the
 * partner; that of a staff user to those of the tenancy in which the key was created.
 */
export const keyHasAccess = `(CASE u.user_type
  WHEN 'account' THEN c.account_id = u.account_id
  WHEN 'partner' THEN a.partner_id = u.partner_id
  WHEN 'staff' THEN CASE WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id ELSE a.partner_id = k.partner_id END
END)`;

/** The same for people to see: the account, or the partner where that is null, whose campaigns the key has access to. */
export const reachedAccount = `CASE u.user_type WHEN 'account' THEN u.account_id WHEN 'staff' THEN k.account_id END`;
export const reachedPartner = `CASE u.user_type WHEN 'staff' THEN k.partner_id ELSE u.partner_id END`;

/**
 * The key of each request, found by the index of digests. Of few users PostgreSQL has no statistics, and by its guess it read all keys for each
 * batch (measured with a thousand keys: 13,000 refusals a second instead of 40,000). A subquery with a LIMIT it plans by itself. SQLite
 * has no LATERAL.
 */
export const keyOfRequest: Readonly<Record<Dialect, string>> = {
  sqlite: 'api_keys k',
  postgres: 'LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k',
};

/** Joins a request with all that {@link isAllowed} looks at. CROSS JOIN keeps SQLite to this order. */
export const joinAuthorization = ({ kind }: Database) =>
  `CROSS JOIN ${keyOfRequest[kind]} CROSS JOIN users u CROSS JOIN campaigns c CROSS JOIN accounts a`;

export const isAllowed = `
  k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
  AND ${keyIsActive} AND ${keyHasAccess}`;
