-- Locks the counts of the batch's keys, until its transaction ends. Otherwise, two cores that place calls of a key at the same time could see
-- the same count, and together exceed the limit.
INSERT INTO api_key_days (api_key_id, day, placed)
SELECT DISTINCT k.id, r.day, 0
FROM (
  SELECT
    e.value->>0 AS digest, e.value->>1 AS campaign_id, (e.value->>2)::bigint AS at, e.value->>3 AS limits_version,
    e.value->>6 AS day
  FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
CROSS JOIN LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k
CROSS JOIN users u
CROSS JOIN campaigns c
CROSS JOIN accounts a
WHERE k.digest = r.digest AND u.id = k.creator_id AND c.id = r.campaign_id AND a.id = c.account_id
  AND {{isAllowed}}
ORDER BY 1, 2
ON CONFLICT (api_key_id, day) DO UPDATE SET placed = api_key_days.placed
