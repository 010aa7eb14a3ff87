-- Records the outcome that the provider has reported. The first one also replaces `unknown`. If the call's data was erased, it stays erased,
-- because the detail may name the person.
UPDATE calls SET
  state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds,
  handoff = 'taken', dialed_at = coalesce(dialed_at, first_attempt_at),
  late_outcome_at = CASE WHEN (state = 'unknown') THEN r.told_at END, answered_by = r.answered_by
FROM (
  SELECT ?1->>0 AS contact_id, ?1->>1 AS outcome, ?1->>2 AS detail, ?1->>3 AS ended_at, ?1->>4 AS duration_seconds, ?1->>5 AS told_at,
    ?1->>6 AS answered_by
) AS r
WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL
  AND (state = 'unknown' OR (state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
  AND phone IS NOT NULL
RETURNING calls.contact_id
