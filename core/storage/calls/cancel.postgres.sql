-- Cancels the calls of one batch: see cancel.sqlite.sql.
UPDATE calls SET state = 'cancelled', due_at = NULL, cancelled_at = call.cancelled_at, ended_at = call.cancelled_at
FROM (
  SELECT g.campaign_id, e.value->>0 AS {{by}}, (e.value->>1)::bigint AS cancelled_at
  FROM (
    SELECT c.id AS campaign_id, r.rows AS rows
    FROM (
      SELECT
        e.value->>0 AS digest, e.value->>1 AS campaign_id, (e.value->>2)::bigint AS at, e.value->>3 AS limits_version,
        e.value->4 AS rows
      FROM jsonb_array_elements($1::jsonb) AS e(value)
    ) AS r
    CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    WHERE k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
      AND {{isAllowed}}
  ) AS g
  CROSS JOIN jsonb_array_elements(g.rows) AS e(value)
  ORDER BY campaign_id, {{by}}
) AS call
WHERE calls.campaign_id = call.campaign_id AND calls.{{by}} = call.{{by}}
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id, calls.request_id
