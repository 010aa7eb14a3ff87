-- Finds the key of each request: whether it's active, when it expires, and the version of its limits. Returns the same columns for each key,
-- so that all refusals take equally long. A revoked key has no row in api_keys, so it's as unknown as one that never existed.
SELECT
  r.n, u.id IS NOT NULL AS is_active,
  CASE WHEN u.id IS NOT NULL THEN k.expires_at END AS expires_at,
  CASE WHEN u.id IS NOT NULL THEN k.limits_version END AS limits_version
FROM (SELECT CAST(e.value->>0 AS bigint) AS n, e.value->>1 AS digest, CAST(e.value->>2 AS bigint) AS at FROM {{rows}}) AS r
LEFT JOIN {{key}} ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id AND {{keyIsActive}}
