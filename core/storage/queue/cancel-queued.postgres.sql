-- Cancels these calls if they haven't been dialed, and counts them. It locks them first, because otherwise PostgreSQL plans a join that may
-- read an index from start to end, and because `skip` says what to do about calls that another transaction has locked.
WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (
    SELECT e.value->>0 AS campaign_id, e.value->>1 AS contact_id, (e.value->>2)::bigint AS at
    FROM jsonb_array_elements($1::jsonb) AS e(value)
  ) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  FOR UPDATE OF calls {{skip}}
), changed AS ( -- not in a shard
-- in a shard: )
  UPDATE calls SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
  FROM found
  WHERE calls.campaign_id = found.campaign_id AND calls.contact_id = found.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS ( -- not in a shard
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) -- not in a shard
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3 -- not in a shard
) -- not in a shard
SELECT contact_id FROM changed -- not in a shard
