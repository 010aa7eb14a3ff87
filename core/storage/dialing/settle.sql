-- Ends a call that this dialer has claimed. The condition on the attempt excludes a dialer that has lost its lease. The condition on the state
-- makes sure that an outcome that the provider has reported since the claim isn't overwritten. The condition on the hand-off is needed to use
-- the index by contact ID.
UPDATE calls SET state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds
FROM (
  SELECT
    {{given}}->>0 AS contact_id, {{given}}->>1 AS outcome, {{given}}->>2 AS detail, CAST({{given}}->>3 AS bigint) AS ended_at,
    CAST({{given}}->>4 AS bigint) AS duration_seconds, CAST({{given}}->>5 AS bigint) AS attempt
) AS r
WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL AND state = 'dialing' AND calls.attempt = r.attempt
RETURNING calls.campaign_id, calls.placed_at, calls.state
