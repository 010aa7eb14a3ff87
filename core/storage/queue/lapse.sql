-- Lapses calls whose notAfter has passed, up to a number of calls, except those that another process has locked. Records that time as their
-- end, no matter how late this runs, because the retention period starts then. Reads the two stages separately, because each has its own
-- index, and no index covers both. The detail says so if dialing was stopped then, if contact limits held the call until after that time, or
-- if the call was waiting for its turn in a pace.
WITH late AS MATERIALIZED (
  SELECT * FROM (
    SELECT campaign_id, contact_id FROM calls
    WHERE state = 'queued' AND not_after IS NOT NULL AND not_after < CAST({{given}}->>0 AS bigint)
    LIMIT CAST({{given}}->>1 AS bigint) {{skipLocked}}
  ) AS queued
  UNION ALL
  SELECT * FROM (
    SELECT campaign_id, contact_id FROM calls
    WHERE state = 'dialing' AND handoff = 'retry' AND not_after IS NOT NULL AND not_after < CAST({{given}}->>0 AS bigint)
    LIMIT CAST({{given}}->>1 AS bigint) {{skipLocked}}
  ) AS waiting
)
UPDATE calls SET state = 'lapsed', ended_at = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, due_at = NULL,
  detail = {{detail}}
WHERE (campaign_id, contact_id) IN (SELECT campaign_id, contact_id FROM late LIMIT CAST({{given}}->>1 AS bigint))
  AND state IN ('queued', 'dialing')
RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.detail
