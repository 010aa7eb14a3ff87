-- Cancels these calls if they haven't been dialed. A trigger counts them.
WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS at FROM jsonb_each(?)) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
)
UPDATE calls SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
FROM found
WHERE calls.campaign_id = found.campaign_id AND calls.contact_id = found.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.contact_id
