-- Finds the key of each request: whether it's active, when it expires, and the version of its limits. Returns the same columns for each key,
-- so that all refusals take equally long. A revoked key has no row in api_keys, so it's as unknown as one that never existed.
SELECT
  r.n, u.id IS NOT NULL AS is_active,
  CASE WHEN u.id IS NOT NULL THEN k.expires_at END AS expires_at,
  CASE WHEN u.id IS NOT NULL THEN k.limits_version END AS limits_version
FROM (SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS at FROM jsonb_each(?)) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id AND {{keyIsActive}}
