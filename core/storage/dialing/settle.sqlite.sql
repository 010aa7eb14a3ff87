-- Ends a call that this dialer has claimed. The condition on the attempt excludes a dialer that has lost its lease. The condition on the state
-- makes sure that an outcome that the provider has reported since the claim isn't overwritten. The condition on the hand-off is needed to use
-- the index by contact ID.
UPDATE calls SET state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds
FROM (
  SELECT ?1->>0 AS contact_id, ?1->>1 AS outcome, ?1->>2 AS detail, ?1->>3 AS ended_at, ?1->>4 AS duration_seconds, ?1->>5 AS attempt
) AS r
WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL
  AND (state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken'))
  AND calls.attempt = r.attempt
RETURNING calls.contact_id
