-- Ends a call that this dialer has claimed: see settle.sqlite.sql.
WITH changed AS ( -- not in a shard
  UPDATE calls SET state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds
  FROM (
    SELECT
      $1::jsonb->>0 AS contact_id, $1::jsonb->>1 AS outcome, $1::jsonb->>2 AS detail, ($1::jsonb->>3)::bigint AS ended_at,
      ($1::jsonb->>4)::bigint AS duration_seconds, ($1::jsonb->>5)::bigint AS attempt
  ) AS r
  WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL
    AND (state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken'))
    AND calls.attempt = r.attempt
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS ( -- not in a shard
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) -- not in a shard
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3 -- not in a shard
) -- not in a shard
SELECT contact_id FROM changed -- not in a shard
