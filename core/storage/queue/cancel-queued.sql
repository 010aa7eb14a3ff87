-- Cancels these calls if they haven't been dialed. Finds and locks them first, because otherwise PostgreSQL plans a join that may read an
-- index from start to end, and because `lock` says what to do about calls that another transaction has locked.
WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (SELECT e.value->>0 AS campaign_id, e.value->>1 AS contact_id, CAST(e.value->>2 AS bigint) AS at, e.value->>3 AS why FROM {{rows}}) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff = 'retry'))
  {{lock}}
)
UPDATE calls SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at, detail = found.why
FROM found
WHERE calls.campaign_id = found.campaign_id AND calls.contact_id = found.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff = 'retry'))
RETURNING calls.campaign_id, calls.placed_at, calls.state
