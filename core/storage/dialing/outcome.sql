-- Records the outcome that the provider has reported. The first one also replaces `unknown`; a call that was cancelled stays cancelled. If the
-- call's data was erased, it stays erased, because the detail may name the person. If the provider hasn't said that it has the call, it
-- called the number during the hand-off that's under way, which began when the lease did, or otherwise when the outcome says. A call that
-- was held since then has no first attempt.
UPDATE calls SET
  state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds,
  handoff = 'taken', dialed_at = coalesce(dialed_at, CASE
    WHEN state = 'dialing' AND handoff = 'open' THEN due_at - r.lease
    WHEN r.began_at > coalesce(first_attempt_at, placed_at) THEN r.began_at ELSE coalesce(first_attempt_at, placed_at)
  END),
  late_outcome_at = CASE WHEN state = 'unknown' THEN r.told_at END, answered_by = r.answered_by
FROM (
  SELECT
    {{given}}->>0 AS contact_id, {{given}}->>1 AS outcome, {{given}}->>2 AS detail, CAST({{given}}->>3 AS bigint) AS ended_at,
    CAST({{given}}->>4 AS bigint) AS duration_seconds, CAST({{given}}->>5 AS bigint) AS told_at, {{given}}->>6 AS answered_by,
    CAST({{given}}->>7 AS bigint) AS began_at, CAST({{given}}->>8 AS bigint) AS lease
) AS r
WHERE calls.contact_id = r.contact_id AND handoff IS NOT NULL AND state IN ('unknown', 'dialing') AND phone IS NOT NULL
RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.late_outcome_at, calls.answered_by
