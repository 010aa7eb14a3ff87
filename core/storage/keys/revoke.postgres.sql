-- Revokes keys permanently: see revoke.sqlite.sql. First locks the keys in order, so that two processes that revoke the same keys wait for each
-- other instead of deadlocking.
SELECT id FROM api_keys WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb->0)) ORDER BY id FOR UPDATE
;
INSERT INTO revoked_api_keys
  (id, name, creator_id, creator_partner_id, account_id, partner_id, creator_name, revoked_at, cancelling_since)
SELECT
  k.id, k.name, k.creator_id, k.creator_partner_id, k.account_id, k.partner_id,
  (SELECT u.name FROM users u WHERE u.id = k.creator_id), ($1::jsonb->>1)::bigint, ($1::jsonb->>2)::bigint
FROM api_keys k
WHERE k.id IN (SELECT jsonb_array_elements_text($1::jsonb->0))
;
DELETE FROM api_keys WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb->0)) RETURNING id
