-- Claims due calls, which the transaction has picked (`pick` in claim.ts), locked and checked against the rules, until the lease ends.
--
-- A call that hasn't been dialed is claimed only if its number isn't on a do-not-call list: this respects every entry that was committed before
-- the statement started. Any other call may already be with the provider. Its hand-off becomes `doubt` (or stays `taken`), it keeps the
-- provider that has it or may have it, and is_listed says that it must not be handed off again. A call that was cancelled since it was picked
-- is no longer due. A call never has two claims at the same time, because the lease moves due_at. The pairs are a subquery: see end-undialed.sql.
-- If the provider has accepted the call, the claim only asks for its outcome, so it isn't counted as an attempt (call-states.ts).
UPDATE calls SET
  state = 'dialing', attempt = attempt + CASE WHEN handoff = 'taken' AND attempt < {{maxClaim}} THEN {{claimWithoutAttempt}} ELSE 1 END,
  due_at = r.lease_until, held_until = NULL, held_for = NULL,
  provider = CASE WHEN state = 'queued' OR handoff = 'retry' THEN r.provider ELSE calls.provider END,
  first_attempt_at = coalesce(first_attempt_at, r.now),
  detail = CASE WHEN state = 'dialing' AND handoff IN ('open', 'doubt') THEN NULL ELSE detail END,
  handoff = CASE
    WHEN state = 'queued' OR handoff = 'retry' THEN 'open'
    WHEN handoff IN ('open', 'doubt') THEN 'doubt'
    WHEN handoff = 'taken' THEN 'taken'
  END
FROM (
  SELECT {{given}}->>1 AS provider, CAST({{given}}->>2 AS bigint) AS now, CAST({{given}}->>3 AS bigint) AS lease_until
) AS r
WHERE (calls.campaign_id, calls.contact_id) IN (SELECT e.value->>0, e.value->>1 FROM {{firstRows}})
  AND due_at <= r.now AND state IN ('queued', 'dialing')
  AND NOT ((state = 'queued' OR (state = 'dialing' AND handoff = 'retry')) AND {{isListed}})
RETURNING
  calls.contact_id, calls.request_id, calls.campaign_id, calls.phone, calls.name, calls.time_zone, calls.variables, calls.placed_at,
  calls.not_before, calls.not_after, calls.attempt, calls.handoff, calls.first_attempt_at, calls.provider, {{isListed}} AS is_listed
