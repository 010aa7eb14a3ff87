-- Places the calls of one batch. Requests with the same key, campaign and limits are one group, so that one lookup decides for all of them.
--
-- A call is placed only if all of this is true when the statement starts:
--   * The key exists: a revoked key has no row in api_keys (keys/revoke.sql deletes it), so the join finds nothing. It and its creator are
--     active, it has access to the campaign, and the process knew its current limits: isAllowed, in keys/authorization.ts.
--   * The process knew the current rules of the partner (rules_version).
--   * The number isn't on the do-not-call list of the account or its partner. If the process knows that it isn't in the current version of
--     the lists (unlisted_version), there's nothing to look up: a statement that sees a version also sees all of its entries. Both lists
--     are looked up at a single place in one index, because with millions of entries, each additional place takes a tenth of the time of a
--     placed call. That's possible because an account never moves to another partner. lists_partner_id is null if the lists needn't be
--     searched.
--   * The campaign has no call with this request ID, not even one that was placed since then. `lookUp` finds out whether it's a repeat.
--
-- `placingGroups`, `toGroupRow` and `requestRow` in place-and-cancel.ts build the groups, `placingRow` and `callRow` the calls in them.
--
-- Measured: RETURNING would add a tenth to the cost, and nearly always all rows are inserted, so if the number of rows is smaller than the
-- batch, `findInserted` finds out which were inserted. LIMIT -1 keeps SQLite from merging the subquery into the statement, where it would
-- look for calls by campaign alone. CROSS JOIN makes it keep the order of the tables. The operator `->` would return the rows as text,
-- which would have to be parsed again.
INSERT INTO calls (
  campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, name, time_zone, variables,
  not_before, not_after, placed_at, due_at, held_until, response_held_until
)
SELECT
  call.campaign_id, call.account_id, call.api_key_id, 'queued', call.contact_id, call.request_id, call.phone, call.name, call.time_zone,
  call.variables, call.not_before, call.not_after, call.placed_at, call.due_at, call.held_until, call.held_until
FROM (
  SELECT
    g.api_key_id, g.campaign_id, g.account_id, g.lists_partner_id,
    e.value->>0 AS contact_id, e.value->>1 AS request_id, e.value->>2 AS phone, e.value->>3 AS name, e.value->>4 AS time_zone,
    e.value->>5 AS variables, e.value->>6 AS not_before, e.value->>7 AS not_after, e.value->>8 AS placed_at,
    e.value->>9 AS due_at, e.value->>10 AS held_until
  FROM (
    SELECT
      k.id AS api_key_id, c.id AS campaign_id, c.account_id AS account_id,
      CASE WHEN (p.do_not_call_version = r.unlisted_version) IS NOT TRUE
        THEN CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END
      END AS lists_partner_id,
      r.rows AS rows
    FROM (
      SELECT
        value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version, value->>4 AS rules_version,
        value->>5 AS unlisted_version, jsonb_extract(value, '$[6]') AS rows
      FROM jsonb_each(?)
    ) AS r
    CROSS JOIN api_keys k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    CROSS JOIN partners p
    WHERE k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
      AND {{isAllowed}}
      AND p.id = a.partner_id AND p.rules_version IS NOT DISTINCT FROM r.rules_version
  ) AS g
  CROSS JOIN jsonb_each(g.rows) AS e
  LIMIT -1
) AS call
WHERE NOT (call.lists_partner_id IS NOT NULL AND (
  SELECT 1 FROM do_not_call d
  WHERE d.partner_id = call.lists_partner_id AND d.phone = call.phone
    AND (d.account_id IS NULL OR d.account_id = call.account_id) AND (d.ends_at IS NULL OR d.ends_at >= call.placed_at)
  LIMIT 1
) IS NOT NULL)
ON CONFLICT (campaign_id, request_id) DO NOTHING
