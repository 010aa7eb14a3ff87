-- Cancels the calls of one batch. `by` is request_id or contact_id. Requests with the same key, campaign and limits are one group.
--
-- A call is cancelled only if it's queued or waits for another try, so it hasn't been dialed, and if the key may do it: see place.sqlite.sql.
-- If a dialer claims the call at the same time, one of the two statements waits for the other, and then finds another state and changes
-- nothing. A trigger counts the ended call.
UPDATE calls SET state = 'cancelled', due_at = NULL, cancelled_at = call.cancelled_at, ended_at = call.cancelled_at
FROM (
  SELECT g.campaign_id, e.value->>0 AS {{by}}, e.value->>1 AS cancelled_at
  FROM (
    SELECT c.id AS campaign_id, r.rows AS rows
    FROM (
      SELECT
        value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version,
        jsonb_extract(value, '$[4]') AS rows
      FROM jsonb_each(?)
    ) AS r
    CROSS JOIN api_keys k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    WHERE k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
      AND {{isAllowed}}
  ) AS g
  CROSS JOIN jsonb_each(g.rows) AS e
  LIMIT -1
) AS call
WHERE calls.campaign_id = call.campaign_id AND calls.{{by}} = call.{{by}}
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.campaign_id, calls.contact_id, calls.request_id
