-- Finds out why a statement changed nothing for some requests: whether each key is active and has access to the campaign, its current limits
-- and how many calls it has placed today, the call that the request names there (`by` is request_id or contact_id), whether the number is
-- on a list, and the version of the rules. This only chooses the response: the statement has already decided.
SELECT
  r.n, {{limits}},
  CASE WHEN k.calls_per_day IS NOT NULL THEN {{placedToday}} END AS placed_today,
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
    CAST(e.value->>0 AS bigint) AS n, e.value->>1 AS digest, e.value->>2 AS campaign_id, CAST(e.value->>3 AS bigint) AS at,
    e.value->>4 AS limits_version, e.value->>5 AS day, e.value->>6 AS {{by}}, e.value->>7 AS phone,
    CAST(e.value->>8 AS bigint) AS placed
  FROM {{rows}}
) AS r
LEFT JOIN {{key}} ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id AND x.{{by}} = r.{{by}}
