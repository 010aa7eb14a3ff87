-- Finds out why a statement changed nothing for some requests: see explain.sqlite.sql. In a shard, the counts are read separately, because
-- they may be on another node.
SELECT
  r.n, {{limits}},
  CASE WHEN k.calls_per_day IS NOT NULL -- not in a shard
    THEN coalesce((SELECT d.placed FROM api_key_days d WHERE d.api_key_id = k.id AND d.day = r.day), 0) -- not in a shard
  END AS placed_today, -- not in a shard
  k.id IS NOT NULL AND {{keyIsActive}} AS is_active,
  c.id IS NOT NULL AND {{keyHasAccess}} AS has_access,
  x.contact_id, x.request_id, CASE x.state WHEN 'dialing' THEN x.handoff ELSE x.state END AS stage, x.placed_at, x.cancelled_at,
  x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after, x.response_held_until,
  p.rules_version,
  (CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END IS NOT NULL AND (
    SELECT 1 FROM do_not_call d
    WHERE d.partner_id = CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = a.id) AND (d.ends_at IS NULL OR d.ends_at >= r.at)
    LIMIT 1
  ) IS NOT NULL) AS is_listed
FROM (
  SELECT
    (e.value->>0)::bigint AS n, e.value->>1 AS digest, e.value->>2 AS campaign_id, (e.value->>3)::bigint AS at,
    e.value->>4 AS limits_version, e.value->>5 AS day, e.value->>6 AS {{by}}, e.value->>7 AS phone
  FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
LEFT JOIN LATERAL (SELECT * FROM api_keys WHERE digest = r.digest LIMIT 1) k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id AND x.{{by}} = r.{{by}}
