-- Postpones due calls, which the transaction has locked, until calling hours or, according to held_for, something else allows them. A call
-- that waits for another attempt definitely isn't with the provider, so its hour for retries starts again. Doesn't check again whether the
-- calls are due, because if many calls have just become due, PostgreSQL could compare each of them with each of these: for 500 of 40,000
-- calls, that took more than five seconds.
UPDATE calls SET
  due_at = CAST({{given}}->>1 AS bigint), held_until = CAST({{given}}->>1 AS bigint), held_for = {{given}}->>2, first_attempt_at = NULL
WHERE (campaign_id, contact_id) IN (SELECT e.value->>0, e.value->>1 FROM {{firstRows}})
  AND (state = 'queued' OR (state = 'dialing' AND handoff = 'retry'))
