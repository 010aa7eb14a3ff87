-- Revokes keys permanently. Keeps the data that the list of calls shows, and deletes the row with the digest, so that the key can't become
-- valid again: every later statement that looks for the digest finds nothing, in every process. `cancelling_since` marks keys whose queued
-- calls still have to be cancelled.
INSERT INTO revoked_api_keys
  (id, name, creator_id, creator_partner_id, account_id, partner_id, creator_name, revoked_at, cancelling_since)
SELECT
  k.id, k.name, k.creator_id, k.creator_partner_id, k.account_id, k.partner_id,
  (SELECT u.name FROM users u WHERE u.id = k.creator_id), ?1->>1, ?1->>2
FROM api_keys k
WHERE k.id IN (SELECT value FROM jsonb_each(?1, '$[0]'))
;
DELETE FROM api_keys WHERE id IN (SELECT value FROM jsonb_each(?1, '$[0]')) RETURNING id
