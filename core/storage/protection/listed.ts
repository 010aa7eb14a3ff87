/**
 * SQL: whether the number is on the do-not-call list of an account or its partner. The statements that place and claim calls contain it, so
 * an entry that was committed before they started counts. Scopes that have never had an entry cost no look-up.
 *
 * A subquery with LIMIT, because PostgreSQL may turn EXISTS into a hash of the whole list.
 *
 * @param sql.account the alias of the joined account
 * @param sql.partner the alias of the joined partner
 */
export function isListed({ account, partner, phone, at }: { account: string; partner: string; phone: string; at: string }): string {
  const isOnListSql = (scope: string) => `(${scope}.lists_numbers IS NOT NULL AND (SELECT 1 FROM do_not_call d
    WHERE d.scope_id = ${scope}.id AND d.phone = ${phone} AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL)`;
  return `(${isOnListSql(account)} OR ${isOnListSql(partner)})`;
}

/** SQL: joins a call to place with everything that {@link isUnprotected} reads, after the account `a`. */
export const joinProtection = 'CROSS JOIN partners p';

/** SQL: the call's number isn't on a list, and the process judged the call by the current rules. */
export const isUnprotected = `p.id = a.partner_id AND p.rules_version IS NOT DISTINCT FROM r.rules_version
  AND NOT ${isListed({ account: 'a', partner: 'p', phone: 'r.phone', at: 'r.at' })}`;

/** SQL: the same for a row of `calls`. @param at SQL */
export function isCallListed(at: string): string {
  return `(SELECT 1 FROM accounts la CROSS JOIN partners lp WHERE la.id = calls.account_id AND lp.id = la.partner_id
    AND ${isListed({ account: 'la', partner: 'lp', phone: 'calls.phone', at })}) IS NOT NULL`;
}
