-- Postpones due calls, which the transaction has locked, until calling hours allow them: see hold.sqlite.sql. Doesn't check again whether the
-- calls are due, because if many calls have just become due, the plan could compare each of them with each of these: for 500 of 40,000 calls,
-- that took more than five seconds.
UPDATE calls SET
  due_at = ($1::jsonb->>1)::bigint, held_until = ($1::jsonb->>1)::bigint, held_for = $1::jsonb->>2, first_attempt_at = NULL
WHERE (campaign_id, contact_id) IN (SELECT e.value->>0, e.value->>1 FROM jsonb_array_elements($1::jsonb->0) AS e(value))
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
