/**
 * SQL: whether the number is on one of the lists. The statements that place and claim calls contain it, so an entry that was committed
 * before they started counts.
 *
 * A subquery with LIMIT, because PostgreSQL may turn EXISTS into a hash of the whole list.
 *
 * @param sql.lists the lists, each from {@link listSql}
 */
export function isListed({ lists, phone, at }: { lists: readonly string[]; phone: string; at: string }): string {
  const isOnSql = (list: string) => `(${list} IS NOT NULL AND (SELECT 1 FROM do_not_call d
    WHERE d.scope_id = ${list} AND d.phone = ${phone} AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL)`;
  return `(${lists.map(isOnSql).join(' OR ')})`;
}

/** SQL: the ID of an account or partner if it has a do-not-call list; otherwise null. Scopes that have never had an entry cost no look-up. */
export function listSql(scope: string): string {
  return `CASE WHEN ${scope}.lists_numbers IS NOT NULL THEN ${scope}.id END`;
}

/** SQL: joins a group of calls to place with everything that {@link isJudgedByCurrentRules} and {@link placingLists} read, after the account `a`. */
export const joinProtection = 'CROSS JOIN partners p';

/** SQL: the process judged the calls by the current rules. */
export const isJudgedByCurrentRules = 'p.id = a.partner_id AND p.rules_version IS NOT DISTINCT FROM r.rules_version';

/** SQL: the lists that count for a group of calls. */
export const placingLists = { account_list: listSql('a'), partner_list: listSql('p') } as const;

/** SQL: the number of a call `r` isn't on these lists. */
export const isUnlisted = `NOT ${isListed({ lists: Object.keys(placingLists).map((list) => `r.${list}`), phone: 'r.phone', at: 'r.placed_at' })}`;

/** SQL: the same for a row of `calls`. @param at SQL */
export function isCallListed(at: string): string {
  return `(SELECT 1 FROM accounts la CROSS JOIN partners lp WHERE la.id = calls.account_id AND lp.id = la.partner_id
    AND ${isListed({ lists: ['la', 'lp'].map(listSql), phone: 'calls.phone', at })}) IS NOT NULL`;
}
