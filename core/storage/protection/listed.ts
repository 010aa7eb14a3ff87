/**
 * SQL: whether the number is on the do-not-call list of an account or its partner. The statements that place and claim calls contain it, so
 * they respect every entry that was committed before they started.
 *
 * Both lists are looked up at a single place in one index, because with millions of entries, each additional place takes a tenth of the
 * time of a placed call. That's possible because an account never moves to another partner. The lookup is a subquery with LIMIT, because
 * PostgreSQL may turn EXISTS into a hash of the whole list.
 *
 * @param sql.listing from {@link listingSql}
 */
export function isListed({ listing, account, phone, at }: { listing: string; account: string; phone: string; at: string }): string {
  return `(${listing} IS NOT NULL AND (SELECT 1 FROM do_not_call d WHERE d.partner_id = ${listing} AND d.phone = ${phone}
    AND (d.account_id IS NULL OR d.account_id = ${account}) AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL)`;
}

/**
 * SQL: the ID of the partner if it or the account has a do-not-call list; otherwise null. Accounts that have never had an entry don't need
 * a lookup.
 *
 * @param account the alias of the account @param partner the alias of its partner
 */
export function listingSql(account: string, partner: string): string {
  return `CASE WHEN ${account}.has_do_not_call IS NOT NULL OR ${partner}.has_do_not_call IS NOT NULL THEN ${partner}.id END`;
}

/**
 * SQL: joins a group of calls to place with everything that {@link isJudgedByCurrentRules} and {@link placingLists} read, after the account
 * `a`.
 */
export const joinProtection = 'CROSS JOIN partners p';

/** SQL: the process checked the calls against the current rules. */
export const isJudgedByCurrentRules = 'p.id = a.partner_id AND p.rules_version IS NOT DISTINCT FROM r.rules_version';

/**
 * SQL: the columns of a group of calls that {@link isUnlisted} reads. If the process knows that the current version of the lists doesn't
 * have the group's numbers, there's nothing to look up. A statement that sees a version also sees all of its entries, because each
 * transaction that adds entries increases the version.
 */
export const placingLists = {
  listing: `CASE WHEN (p.do_not_call_version = r.unlisted_at) IS NOT TRUE THEN ${listingSql('a', 'p')} END`,
} as const;

/** SQL: the number of call `r` isn't on a list. */
export const isUnlisted = `NOT ${isListed({ listing: 'r.listing', account: 'r.account_id', phone: 'r.phone', at: 'r.placed_at' })}`;

/** SQL: the number of a row of `calls` is on a list. @param at the SQL of the time */
export function isCallListed(at: string): string {
  return `(SELECT 1 FROM accounts la CROSS JOIN partners lp WHERE la.id = calls.account_id AND lp.id = la.partner_id
    AND ${isListed({ listing: listingSql('la', 'lp'), account: 'la.id', phone: 'calls.phone', at })}) IS NOT NULL`;
}
