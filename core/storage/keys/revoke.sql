-- Revokes keys permanently. First locks them in order, so that two processes that revoke the same keys wait for each other instead of
-- deadlocking.
SELECT id FROM api_keys WHERE id IN (SELECT e.value->>0 FROM {{firstRows}}) ORDER BY id {{forUpdate}}
;
-- Keeps the data that the list of calls shows. `cancelling_since` marks keys whose queued calls still have to be cancelled.
INSERT INTO revoked_api_keys
  (id, name, creator_id, creator_partner_id, account_id, partner_id, creator_name, revoked_at, cancelling_since)
SELECT
  k.id, k.name, k.creator_id, k.creator_partner_id, k.account_id, k.partner_id,
  (SELECT u.name FROM users u WHERE u.id = k.creator_id), CAST({{given}}->>1 AS bigint), CAST({{given}}->>2 AS bigint)
FROM api_keys k
WHERE k.id IN (SELECT e.value->>0 FROM {{firstRows}})
;
-- Deletes the row with the digest, so that the key can't become valid again: every later statement that looks for the digest finds nothing,
-- in every process.
DELETE FROM api_keys WHERE id IN (SELECT e.value->>0 FROM {{firstRows}}) RETURNING id
