/**
 * What a key may do, said once, in SQL, because the statement that places or cancels a call must itself see it: a revoke, a deletion
 * or a move that was committed before it wins, on every process.
 *
 * The names stand for: `r` a request of the batch (with `digest`, `campaign_id`, `at`), `k` its key, `u` the key's creator as they
 * are now, `c` the campaign, `a` the campaign's account.
 */

/** The key has not expired. (A revoked key has no row.) */
export const keyIsActive = `(k.expires_at IS NULL OR k.expires_at >= r.at)`;

/**
 * An account user's key reaches every campaign of the account; a partner user's those of every account beneath the partner, tied or
 * not; a staff user's those of the tenancy in which the key was made.
 */
export const keyHasAccess = `(CASE u.user_type
  WHEN 'account' THEN c.account_id = u.account_id
  WHEN 'partner' THEN a.partner_id = u.partner_id
  WHEN 'staff' THEN CASE WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id ELSE a.partner_id = k.partner_id END
END)`;

/** Joins, for inner use: a request with all that it needs in order to be allowed. CROSS JOIN keeps SQLite to this order. */
export const joinAuthorization = `
  CROSS JOIN api_keys k CROSS JOIN users u CROSS JOIN campaigns c CROSS JOIN accounts a`;

export const isAllowed = `
  k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
  AND ${keyIsActive} AND ${keyHasAccess}`;
