-- Lapses calls whose notAfter has passed, up to a number of calls: see lapse.sqlite.sql. Skips calls that another process has locked.
WITH late AS MATERIALIZED (
  SELECT * FROM (
    SELECT campaign_id, contact_id FROM calls
    WHERE state = 'queued' AND not_after IS NOT NULL AND not_after < ($1::jsonb->>0)::bigint
    LIMIT ($1::jsonb->>1)::bigint FOR UPDATE SKIP LOCKED
  ) AS queued
  UNION ALL
  SELECT * FROM (
    SELECT campaign_id, contact_id FROM calls
    WHERE (state = 'dialing' AND handoff IN ('retry')) AND not_after IS NOT NULL AND not_after < ($1::jsonb->>0)::bigint
    LIMIT ($1::jsonb->>1)::bigint FOR UPDATE SKIP LOCKED
  ) AS waiting
), changed AS ( -- not in a shard
-- in a shard: )
  UPDATE calls SET state = 'lapsed', ended_at = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, due_at = NULL
  WHERE (campaign_id, contact_id) IN (SELECT campaign_id, contact_id FROM late LIMIT ($1::jsonb->>1)::bigint)
    AND state IN ('queued', 'dialing')
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS ( -- not in a shard
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) -- not in a shard
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3 -- not in a shard
) -- not in a shard
SELECT contact_id FROM changed -- not in a shard
