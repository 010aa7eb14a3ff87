-- Records the outcome that the provider has reported: see outcome.sqlite.sql. A call with a late outcome was already counted as `unknown`, so
-- that count is taken back.
WITH changed AS ( -- not in a shard
  UPDATE calls SET
    state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds,
    handoff = 'taken', dialed_at = coalesce(dialed_at, first_attempt_at),
    late_outcome_at = CASE WHEN (state = 'unknown') THEN r.told_at END, answered_by = r.answered_by
  FROM (
    SELECT
      $1::jsonb->>0 AS contact_id, $1::jsonb->>1 AS outcome, $1::jsonb->>2 AS detail, ($1::jsonb->>3)::bigint AS ended_at,
      ($1::jsonb->>4)::bigint AS duration_seconds, ($1::jsonb->>5)::bigint AS told_at, $1::jsonb->>6 AS answered_by
  ) AS r
  WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL
    AND (state = 'unknown' OR (state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
    AND phone IS NOT NULL
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.late_outcome_at, calls.contact_id
), counted AS ( -- not in a shard
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) -- not in a shard
  SELECT campaign_id, placed_at - placed_at % 900000, state, 1 FROM changed -- not in a shard
  UNION ALL SELECT campaign_id, placed_at - placed_at % 900000, 'unknown', -1 FROM changed WHERE late_outcome_at IS NOT NULL -- not in a shard
) -- not in a shard
SELECT contact_id FROM changed -- not in a shard
