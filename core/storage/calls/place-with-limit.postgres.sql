-- Places calls of keys that have a daily call limit: like place.postgres.sql, but only as many as the key has left on its day. Repeats don't
-- count, so they're excluded before the rest is numbered. In the same transaction, lock-days.postgres.sql runs before it and keeps other cores
-- from counting, and `countPlaced` runs after it. `placingGroups` in place-and-cancel.ts adds the day to each group, and `addPlaced` the count.
INSERT INTO calls (
  campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, name, time_zone, variables,
  not_before, not_after, placed_at, due_at, held_until, response_held_until
)
SELECT
  campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, name, time_zone, variables,
  not_before, not_after, placed_at, due_at, held_until, response_held_until
FROM (
  SELECT
    call.campaign_id, call.account_id, call.api_key_id, 'queued' AS state, call.contact_id, call.request_id, call.phone, call.name,
    call.time_zone, call.variables, call.not_before, call.not_after, call.placed_at, call.due_at, call.held_until,
    call.held_until AS response_held_until, call.calls_per_day, call.placed,
    row_number() OVER (PARTITION BY call.api_key_id, call.day ORDER BY call.contact_id) AS nth
  FROM (
    SELECT
      g.api_key_id, g.campaign_id, g.account_id, g.lists_partner_id, g.day, g.calls_per_day, g.placed,
      e.value->>0 AS contact_id, e.value->>1 AS request_id, e.value->>2 AS phone, e.value->>3 AS name, e.value->>4 AS time_zone,
      e.value->>5 AS variables, (e.value->>6)::bigint AS not_before, (e.value->>7)::bigint AS not_after,
      (e.value->>8)::bigint AS placed_at, (e.value->>9)::bigint AS due_at, (e.value->>10)::bigint AS held_until
    FROM (
      SELECT
        k.id AS api_key_id, c.id AS campaign_id, c.account_id AS account_id,
        CASE WHEN (p.do_not_call_version = r.unlisted_version) IS NOT TRUE
          THEN CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END
        END AS lists_partner_id,
        r.day AS day, k.calls_per_day AS calls_per_day,
        {{placedToday}} AS placed,
        r.rows AS rows
      FROM (
        SELECT
          e.value->>0 AS digest, e.value->>1 AS campaign_id, (e.value->>2)::bigint AS at, e.value->>3 AS limits_version,
          (e.value->>4)::bigint AS rules_version, (e.value->>5)::bigint AS unlisted_version, e.value->>6 AS day,
          e.value->7 AS rows, (e.value->>8)::bigint AS placed
        FROM jsonb_array_elements($1::jsonb) AS e(value)
      ) AS r
      CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k
      CROSS JOIN users u
      CROSS JOIN campaigns c
      CROSS JOIN accounts a
      CROSS JOIN partners p
      WHERE k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
        AND {{isAllowed}}
        AND p.id = a.partner_id AND p.rules_version IS NOT DISTINCT FROM r.rules_version
    ) AS g
    CROSS JOIN jsonb_array_elements(g.rows) AS e(value)
    ORDER BY campaign_id, request_id
  ) AS call
  WHERE NOT (call.lists_partner_id IS NOT NULL AND (
    SELECT 1 FROM do_not_call d
    WHERE d.partner_id = call.lists_partner_id AND d.phone = call.phone
      AND (d.account_id IS NULL OR d.account_id = call.account_id) AND (d.ends_at IS NULL OR d.ends_at >= call.placed_at)
    LIMIT 1
  ) IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM calls x WHERE x.campaign_id = call.campaign_id AND x.request_id = call.request_id)
) AS candidates
WHERE placed + nth <= calls_per_day
ON CONFLICT (campaign_id, request_id) DO NOTHING
RETURNING contact_id, api_key_id
