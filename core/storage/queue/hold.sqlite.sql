-- Postpones due calls, which the transaction has locked, until calling hours or, according to held_for, something else allows them. A call that waits for another attempt definitely isn't
-- with the provider, so its hour for retries starts again.
UPDATE calls SET due_at = ?1->>1, held_until = ?1->>1, held_for = ?1->>2, first_attempt_at = NULL
WHERE (campaign_id, contact_id) IN (SELECT value->>0, value->>1 FROM jsonb_each(?1, '$[0]'))
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
