-- Finds the key of each request: see find-key.sqlite.sql, and place.postgres.sql for LATERAL.
SELECT
  r.n, u.id IS NOT NULL AS is_active,
  CASE WHEN u.id IS NOT NULL THEN k.expires_at END AS expires_at,
  CASE WHEN u.id IS NOT NULL THEN k.limits_version END AS limits_version
FROM (
  SELECT (e.value->>0)::bigint AS n, e.value->>1 AS digest, (e.value->>2)::bigint AS at FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
LEFT JOIN LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id AND {{keyIsActive}}
