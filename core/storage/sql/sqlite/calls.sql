-- calls.findActive

SELECT r.n, u.id IS NOT NULL AS is_active, CASE WHEN u.id IS NOT NULL THEN k.expires_at END AS expires_at,
  CASE WHEN u.id IS NOT NULL THEN k.limits_version END AS limits_version
FROM (
  SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS at
  FROM jsonb_each(?)
) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
  AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL);

SELECT k.digest, k.limits_version, CASE
  WHEN k.limits_version IS NOT NULL THEN json_object('addresses', k.addresses, 'calls_per_day', k.calls_per_day, 'time_zone', k.time_zone, 'expiry_time_zone', k.expiry_time_zone)
END AS limits
FROM (
  SELECT value->>0 AS digest
  FROM jsonb_each(?)
) AS r
CROSS JOIN api_keys k
WHERE k.digest = r.digest;

-- calls.place

INSERT INTO calls (campaign_id, account_id, api_key_id, state, contact_id, request_id, phone, name, time_zone,
  variables, not_before, not_after, placed_at, due_at, held_until, answered_held_until)
SELECT r.campaign_id, r.account_id, r.api_key_id, 'queued', r.contact_id, r.request_id, r.phone, r.name,
  r.time_zone, r.variables, r.not_before, r.not_after, r.placed_at, r.due_at, r.held_until, r.held_until
FROM (
  SELECT g.api_key_id, g.campaign_id, g.account_id, g.listing, e.value->>0 AS contact_id, e.value->>1 AS request_id,
    e.value->>2 AS phone, e.value->>3 AS name, e.value->>4 AS time_zone, e.value->>5 AS variables, e.value->>6 AS not_before,
    e.value->>7 AS not_after, e.value->>8 AS placed_at, e.value->>9 AS due_at, e.value->>10 AS held_until
  FROM (
    SELECT k.id AS api_key_id, c.id AS campaign_id, c.account_id AS account_id, CASE
      WHEN (p.lists_version = r.unlisted_at) IS NOT TRUE THEN CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
    END AS listing, r.rows AS rows
    FROM (
      SELECT value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version,
        value->>4 AS rules_version, value->>5 AS unlisted_at, jsonb_extract(value, '$[6]') AS rows
      FROM jsonb_each(?)
    ) AS r
    CROSS JOIN api_keys k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    CROSS JOIN partners p
    WHERE k.digest = r.digest
      AND u.id = k.creator_id
      AND c.id = r.campaign_id
      AND a.id = c.account_id
      AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)
      AND (CASE u.user_type
        WHEN 'account' THEN c.account_id = u.account_id
        WHEN 'partner' THEN a.partner_id = u.partner_id
        WHEN 'staff' THEN CASE
          WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
          ELSE a.partner_id = k.partner_id
        END
      END)
      AND k.limits_version IS NOT DISTINCT
    FROM r.limits_version
      AND p.id = a.partner_id
      AND p.rules_version IS NOT DISTINCT
    FROM r.rules_version
  ) AS g
  CROSS JOIN jsonb_each(g.rows) AS e
  LIMIT -1
) AS r
WHERE NOT (r.listing IS NOT NULL AND (
  SELECT 1
  FROM do_not_call d
  WHERE d.partner_id = r.listing
    AND d.phone = r.phone
    AND (d.account_id IS NULL OR d.account_id = r.account_id)
    AND (d.ends_at IS NULL OR d.ends_at >= r.placed_at)
  LIMIT 1
) IS NOT NULL)
ON CONFLICT (campaign_id, request_id) DO NOTHING;

SELECT 1 AS found
FROM (
  SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS state
  FROM jsonb_each(?)
) AS r
CROSS JOIN calls
WHERE calls.campaign_id = r.campaign_id
  AND calls.contact_id = r.contact_id
  AND calls.state = coalesce(r.state, calls.state);

SELECT r.contact_id
FROM (
  SELECT value->>0 AS campaign_id, value->>1 AS contact_id
  FROM jsonb_each(?)
) AS r
CROSS JOIN calls
WHERE calls.campaign_id = r.campaign_id
  AND calls.contact_id = r.contact_id;

SELECT r.n, k.limits_version, CASE
  WHEN k.limits_version IS NOT NULL THEN json_object('addresses', k.addresses, 'calls_per_day', k.calls_per_day, 'time_zone', k.time_zone, 'expiry_time_zone', k.expiry_time_zone)
END AS limits, CASE
  WHEN k.calls_per_day IS NOT NULL THEN coalesce((
    SELECT d.placed
    FROM api_key_days d
    WHERE d.api_key_id = k.id
      AND d.day = r.day
  ), 0)
END AS placed_today, k.id IS NOT NULL AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL) AS is_active,
  c.id IS NOT NULL AND (CASE u.user_type
    WHEN 'account' THEN c.account_id = u.account_id
    WHEN 'partner' THEN a.partner_id = u.partner_id
    WHEN 'staff' THEN CASE
      WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
      ELSE a.partner_id = k.partner_id
    END
  END) AS has_access, x.contact_id, x.request_id, CASE x.state WHEN 'dialing' THEN x.handoff ELSE x.state END AS stage,
  x.placed_at, x.cancelled_at, x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after,
  x.answered_held_until, p.rules_version, (CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END IS NOT NULL AND (
    SELECT 1
    FROM do_not_call d
    WHERE d.partner_id = CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
      AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = a.id)
      AND (d.ends_at IS NULL OR d.ends_at >= r.at)
    LIMIT 1
  ) IS NOT NULL) AS is_listed
FROM (
  SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS campaign_id, value->>3 AS at, value->>4 AS limits_version,
    value->>5 AS day, value->>6 AS request_id, value->>7 AS phone
  FROM jsonb_each(?)
) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id
  AND x.request_id = r.request_id;

INSERT INTO calls (campaign_id,account_id,api_key_id,state,contact_id,request_id,phone,name,time_zone,variables,not_before,not_after,placed_at,due_at,held_until,answered_held_until)
SELECT campaign_id,account_id,api_key_id,state,contact_id,request_id,phone,name,time_zone,variables,not_before,not_after,placed_at,due_at,held_until,answered_held_until
FROM (
  SELECT r.campaign_id AS campaign_id, r.account_id AS account_id, r.api_key_id AS api_key_id, 'queued' AS state,
    r.contact_id AS contact_id, r.request_id AS request_id, r.phone AS phone, r.name AS name, r.time_zone AS time_zone,
    r.variables AS variables, r.not_before AS not_before, r.not_after AS not_after, r.placed_at AS placed_at,
    r.due_at AS due_at, r.held_until AS held_until, r.held_until AS answered_held_until, r.calls_per_day,
    r.placed, row_number() OVER (PARTITION BY r.api_key_id, r.day ORDER BY r.contact_id) AS nth
  FROM (
    SELECT g.api_key_id, g.campaign_id, g.account_id, g.listing, g.day, g.calls_per_day, g.placed, e.value->>0 AS contact_id,
      e.value->>1 AS request_id, e.value->>2 AS phone, e.value->>3 AS name, e.value->>4 AS time_zone,
      e.value->>5 AS variables, e.value->>6 AS not_before, e.value->>7 AS not_after, e.value->>8 AS placed_at,
      e.value->>9 AS due_at, e.value->>10 AS held_until
    FROM (
      SELECT k.id AS api_key_id, c.id AS campaign_id, c.account_id AS account_id, CASE
        WHEN (p.lists_version = r.unlisted_at) IS NOT TRUE THEN CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
      END AS listing, r.day AS day, k.calls_per_day AS calls_per_day, coalesce((
        SELECT d.placed
        FROM api_key_days d
        WHERE d.api_key_id = k.id
          AND d.day = r.day
      ), 0) AS placed, r.rows AS rows
      FROM (
        SELECT value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version,
          value->>4 AS rules_version, value->>5 AS unlisted_at, value->>6 AS day, jsonb_extract(value, '$[7]') AS rows
        FROM jsonb_each(?)
      ) AS r
      CROSS JOIN api_keys k
      CROSS JOIN users u
      CROSS JOIN campaigns c
      CROSS JOIN accounts a
      CROSS JOIN partners p
      WHERE k.digest = r.digest
        AND u.id = k.creator_id
        AND c.id = r.campaign_id
        AND a.id = c.account_id
        AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)
        AND (CASE u.user_type
          WHEN 'account' THEN c.account_id = u.account_id
          WHEN 'partner' THEN a.partner_id = u.partner_id
          WHEN 'staff' THEN CASE
            WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
            ELSE a.partner_id = k.partner_id
          END
        END)
        AND k.limits_version IS NOT DISTINCT
      FROM r.limits_version
        AND p.id = a.partner_id
        AND p.rules_version IS NOT DISTINCT
      FROM r.rules_version
    ) AS g
    CROSS JOIN jsonb_each(g.rows) AS e
    LIMIT -1
  ) AS r
  WHERE NOT (r.listing IS NOT NULL AND (
    SELECT 1
    FROM do_not_call d
    WHERE d.partner_id = r.listing
      AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = r.account_id)
      AND (d.ends_at IS NULL OR d.ends_at >= r.placed_at)
    LIMIT 1
  ) IS NOT NULL)
    AND NOT EXISTS (
      SELECT 1
      FROM calls x
      WHERE x.campaign_id = r.campaign_id
        AND x.request_id = r.request_id
    )
) AS candidates
WHERE placed + nth <= calls_per_day
ON CONFLICT (campaign_id, request_id) DO NOTHING
RETURNING contact_id, api_key_id;

INSERT INTO api_key_days (api_key_id, day, placed)
SELECT r.api_key_id, r.day, r.placed
FROM (
  SELECT value->>0 AS api_key_id, value->>1 AS day, value->>2 AS placed
  FROM jsonb_each(?)
) AS r
WHERE true
ON CONFLICT (api_key_id, day)
DO UPDATE SET placed = api_key_days.placed + excluded.placed
RETURNING api_key_id, day, placed;

-- calls.cancel

UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = r.cancelled_at, ended_at = r.cancelled_at
FROM (
  SELECT g.campaign_id, e.value->>0 AS request_id, e.value->>1 AS cancelled_at
  FROM (
    SELECT c.id AS campaign_id, r.rows AS rows
    FROM (
      SELECT value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version,
        jsonb_extract(value, '$[4]') AS rows
      FROM jsonb_each(?)
    ) AS r
    CROSS JOIN api_keys k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    WHERE k.digest = r.digest
      AND u.id = k.creator_id
      AND c.id = r.campaign_id
      AND a.id = c.account_id
      AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)
      AND (CASE u.user_type
        WHEN 'account' THEN c.account_id = u.account_id
        WHEN 'partner' THEN a.partner_id = u.partner_id
        WHEN 'staff' THEN CASE
          WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
          ELSE a.partner_id = k.partner_id
        END
      END)
      AND k.limits_version IS NOT DISTINCT
    FROM r.limits_version
  ) AS g
  CROSS JOIN jsonb_each(g.rows) AS e
  LIMIT -1
) AS r
WHERE calls.campaign_id = r.campaign_id
  AND calls.request_id = r.request_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.campaign_id, calls.contact_id, calls.request_id;

SELECT 1 AS found
FROM (
  SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS state
  FROM jsonb_each(?)
) AS r
CROSS JOIN calls
WHERE calls.campaign_id = r.campaign_id
  AND calls.contact_id = r.contact_id
  AND calls.state = coalesce(r.state, calls.state);

SELECT r.n, k.limits_version, CASE
  WHEN k.limits_version IS NOT NULL THEN json_object('addresses', k.addresses, 'calls_per_day', k.calls_per_day, 'time_zone', k.time_zone, 'expiry_time_zone', k.expiry_time_zone)
END AS limits, CASE
  WHEN k.calls_per_day IS NOT NULL THEN coalesce((
    SELECT d.placed
    FROM api_key_days d
    WHERE d.api_key_id = k.id
      AND d.day = r.day
  ), 0)
END AS placed_today, k.id IS NOT NULL AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL) AS is_active,
  c.id IS NOT NULL AND (CASE u.user_type
    WHEN 'account' THEN c.account_id = u.account_id
    WHEN 'partner' THEN a.partner_id = u.partner_id
    WHEN 'staff' THEN CASE
      WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
      ELSE a.partner_id = k.partner_id
    END
  END) AS has_access, x.contact_id, x.request_id, CASE x.state WHEN 'dialing' THEN x.handoff ELSE x.state END AS stage,
  x.placed_at, x.cancelled_at, x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after,
  x.answered_held_until, p.rules_version, (CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END IS NOT NULL AND (
    SELECT 1
    FROM do_not_call d
    WHERE d.partner_id = CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
      AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = a.id)
      AND (d.ends_at IS NULL OR d.ends_at >= r.at)
    LIMIT 1
  ) IS NOT NULL) AS is_listed
FROM (
  SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS campaign_id, value->>3 AS at, value->>4 AS limits_version,
    value->>5 AS day, value->>6 AS request_id, value->>7 AS phone
  FROM jsonb_each(?)
) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id
  AND x.request_id = r.request_id;

UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = r.cancelled_at, ended_at = r.cancelled_at
FROM (
  SELECT g.campaign_id, e.value->>0 AS contact_id, e.value->>1 AS cancelled_at
  FROM (
    SELECT c.id AS campaign_id, r.rows AS rows
    FROM (
      SELECT value->>0 AS digest, value->>1 AS campaign_id, value->>2 AS at, value->>3 AS limits_version,
        jsonb_extract(value, '$[4]') AS rows
      FROM jsonb_each(?)
    ) AS r
    CROSS JOIN api_keys k
    CROSS JOIN users u
    CROSS JOIN campaigns c
    CROSS JOIN accounts a
    WHERE k.digest = r.digest
      AND u.id = k.creator_id
      AND c.id = r.campaign_id
      AND a.id = c.account_id
      AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL)
      AND (CASE u.user_type
        WHEN 'account' THEN c.account_id = u.account_id
        WHEN 'partner' THEN a.partner_id = u.partner_id
        WHEN 'staff' THEN CASE
          WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
          ELSE a.partner_id = k.partner_id
        END
      END)
      AND k.limits_version IS NOT DISTINCT
    FROM r.limits_version
  ) AS g
  CROSS JOIN jsonb_each(g.rows) AS e
  LIMIT -1
) AS r
WHERE calls.campaign_id = r.campaign_id
  AND calls.contact_id = r.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.campaign_id, calls.contact_id, calls.request_id;

SELECT r.n, k.limits_version, CASE
  WHEN k.limits_version IS NOT NULL THEN json_object('addresses', k.addresses, 'calls_per_day', k.calls_per_day, 'time_zone', k.time_zone, 'expiry_time_zone', k.expiry_time_zone)
END AS limits, CASE
  WHEN k.calls_per_day IS NOT NULL THEN coalesce((
    SELECT d.placed
    FROM api_key_days d
    WHERE d.api_key_id = k.id
      AND d.day = r.day
  ), 0)
END AS placed_today, k.id IS NOT NULL AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL) AS is_active,
  c.id IS NOT NULL AND (CASE u.user_type
    WHEN 'account' THEN c.account_id = u.account_id
    WHEN 'partner' THEN a.partner_id = u.partner_id
    WHEN 'staff' THEN CASE
      WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
      ELSE a.partner_id = k.partner_id
    END
  END) AS has_access, x.contact_id, x.request_id, CASE x.state WHEN 'dialing' THEN x.handoff ELSE x.state END AS stage,
  x.placed_at, x.cancelled_at, x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after,
  x.answered_held_until, p.rules_version, (CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END IS NOT NULL AND (
    SELECT 1
    FROM do_not_call d
    WHERE d.partner_id = CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
      AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = a.id)
      AND (d.ends_at IS NULL OR d.ends_at >= r.at)
    LIMIT 1
  ) IS NOT NULL) AS is_listed
FROM (
  SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS campaign_id, value->>3 AS at, value->>4 AS limits_version,
    value->>5 AS day, value->>6 AS contact_id, value->>7 AS phone
  FROM jsonb_each(?)
) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id
  AND x.contact_id = r.contact_id;

-- calls.authorize

SELECT r.n, k.limits_version, CASE
  WHEN k.limits_version IS NOT NULL THEN json_object('addresses', k.addresses, 'calls_per_day', k.calls_per_day, 'time_zone', k.time_zone, 'expiry_time_zone', k.expiry_time_zone)
END AS limits, CASE
  WHEN k.calls_per_day IS NOT NULL THEN coalesce((
    SELECT d.placed
    FROM api_key_days d
    WHERE d.api_key_id = k.id
      AND d.day = r.day
  ), 0)
END AS placed_today, k.id IS NOT NULL AND ((k.expires_at IS NULL OR k.expires_at >= r.at) AND u.disabled_at IS NULL) AS is_active,
  c.id IS NOT NULL AND (CASE u.user_type
    WHEN 'account' THEN c.account_id = u.account_id
    WHEN 'partner' THEN a.partner_id = u.partner_id
    WHEN 'staff' THEN CASE
      WHEN k.account_id IS NOT NULL THEN c.account_id = k.account_id
      ELSE a.partner_id = k.partner_id
    END
  END) AS has_access, x.contact_id, x.request_id, CASE x.state WHEN 'dialing' THEN x.handoff ELSE x.state END AS stage,
  x.placed_at, x.cancelled_at, x.phone, x.name, x.time_zone, x.variables, x.not_before, x.not_after,
  x.answered_held_until, p.rules_version, (CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END IS NOT NULL AND (
    SELECT 1
    FROM do_not_call d
    WHERE d.partner_id = CASE WHEN a.lists_numbers IS NOT NULL OR p.lists_numbers IS NOT NULL THEN p.id END
      AND d.phone = r.phone
      AND (d.account_id IS NULL OR d.account_id = a.id)
      AND (d.ends_at IS NULL OR d.ends_at >= r.at)
    LIMIT 1
  ) IS NOT NULL) AS is_listed
FROM (
  SELECT value->>0 AS n, value->>1 AS digest, value->>2 AS campaign_id, value->>3 AS at, value->>4 AS limits_version,
    value->>5 AS day, value->>6 AS request_id, value->>7 AS phone
  FROM jsonb_each(?)
) AS r
LEFT JOIN api_keys k ON k.digest = r.digest
LEFT JOIN users u ON u.id = k.creator_id
LEFT JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN accounts a ON a.id = c.account_id
LEFT JOIN partners p ON p.id = a.partner_id
LEFT JOIN calls x ON x.campaign_id = c.id
  AND x.request_id = r.request_id;

-- dialing.claim

WITH RECURSIVE waiting (account_id, from_start) AS (
  SELECT min(account_id), 0
  FROM calls
  WHERE due_at IS NOT NULL
    AND account_id > ?
  UNION ALL
  SELECT (
    SELECT min(calls.account_id)
    FROM calls
    WHERE due_at IS NOT NULL
      AND calls.account_id > coalesce(waiting.account_id, '')
  ), CASE WHEN waiting.account_id IS NULL THEN 1 ELSE from_start END
  FROM waiting
  WHERE from_start = 0
    OR waiting.account_id < ?
)
SELECT account_id
FROM waiting
WHERE account_id IS NOT NULL
  AND (from_start = 0 OR account_id <= ?)
  AND EXISTS (
    SELECT 1
    FROM calls
    WHERE calls.account_id = waiting.account_id
      AND due_at IS NOT NULL
      AND due_at <= ?
  )
LIMIT ?;

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where (state = 'queued')
    and `not_after` is not null
    and `not_after` < ?
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'lapsed'
  WHEN 'retry' THEN 'lapsed'
END, `ended_at` = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, `due_at` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where ((state = 'dialing' AND handoff IN ('retry')))
    and `not_after` is not null
    and `not_after` < ?
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'lapsed'
  WHEN 'retry' THEN 'lapsed'
END, `ended_at` = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, `due_at` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

select `campaign_id`, `contact_id`, `account_id`, `state`, `handoff`, `phone`, `time_zone`, `not_before`,
  `not_after`, `placed_at`, `api_key_id`
from `calls`
where `account_id` = ?
  and `due_at` is not null
  and `due_at` <= ?
  and (NOT (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) or coalesce(not_after, due_at + 2592000000) >= ?)
order by `due_at` asc
limit ?;

SELECT a.id, p.rules_version
FROM accounts a
CROSS JOIN partners p
WHERE a.id IN (?)
  AND p.id = a.partner_id;

update `calls`
set `state` = ?, `attempt` = attempt + 1, `due_at` = ?, `held_until` = ?, `provider` = CASE CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'open'
  WHEN 'retry' THEN 'open'
  WHEN 'open' THEN 'doubt'
  WHEN 'doubt' THEN 'doubt'
  WHEN 'taken' THEN 'taken'
END
  WHEN 'open' THEN ?
  ELSE provider
END, `first_attempt_at` = coalesce(first_attempt_at, ?), `handoff` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'open'
  WHEN 'retry' THEN 'open'
  WHEN 'open' THEN 'doubt'
  WHEN 'doubt' THEN 'doubt'
  WHEN 'taken' THEN 'taken'
END
where (`campaign_id`, `contact_id`) in (values (?, ?))
  and `due_at` <= ?
  and `state` in (?, ?)
  and NOT ((state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) AND (
    SELECT 1
    FROM accounts la
    CROSS JOIN partners lp
    WHERE la.id = calls.account_id
      AND lp.id = la.partner_id
      AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
          AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id)
          AND (d.ends_at IS NULL OR d.ends_at >= ?)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL)
returning `contact_id`, `request_id`, `campaign_id`, `phone`, `name`, `time_zone`, `variables`, `placed_at`,
  `not_before`, `not_after`, `attempt`, `handoff`, `first_attempt_at`, `provider`, (
    SELECT 1
    FROM accounts la
    CROSS JOIN partners lp
    WHERE la.id = calls.account_id
      AND lp.id = la.partner_id
      AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
          AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id)
          AND (d.ends_at IS NULL OR d.ends_at >= ?)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL AS is_listed;

SELECT api_key_id, min(due_at) AS due_at, min(placed_at) AS placed_at
FROM (
  SELECT due_at,placed_at,api_key_id,contact_id
  FROM calls INDEXED BY calls_due
  WHERE account_id = ?
    AND due_at IS NOT NULL
    AND due_at <= ?
    AND (due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?)
  ORDER BY due_at,placed_at,api_key_id,contact_id
  LIMIT 10000
) AS stretch
GROUP BY api_key_id;

SELECT due_at,placed_at,api_key_id,contact_id
FROM calls INDEXED BY calls_due
WHERE account_id = ?
  AND due_at IS NOT NULL
  AND due_at <= ?
  AND (due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?)
ORDER BY due_at,placed_at,api_key_id,contact_id
LIMIT 1 OFFSET 9999;

SELECT campaign_id, due_at,placed_at,api_key_id,contact_id
FROM calls INDEXED BY calls_due
WHERE account_id = ?
  AND due_at IS NOT NULL
  AND due_at <= ?
  AND (due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?)
  AND (due_at,placed_at,api_key_id,contact_id) <= (?, ?, ?, ?)
  AND api_key_id = ?
ORDER BY due_at,placed_at,api_key_id,contact_id
LIMIT 1;

select `campaign_id`, `contact_id`, `account_id`, `state`, `handoff`, `phone`, `time_zone`, `not_before`,
  `not_after`, `placed_at`, `api_key_id`
from `calls`
where `account_id` = ?
  and `due_at` is not null
  and `due_at` <= ?
  and (NOT (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) or coalesce(not_after, due_at + 2592000000) >= ?)
  and (`campaign_id`, `contact_id`) in (values (?, ?), (?, ?), (?, ?), (?, ?));

SELECT c.id AS campaign_id, a.id AS account_id, a.partner_id, p.rules_version, s.scope_id, s.hours,
  s.countries, s.kinds
FROM campaigns c
CROSS JOIN accounts a
CROSS JOIN partners p
LEFT JOIN protection_rules s ON s.scope_id IN (c.id, a.id, p.id)
WHERE c.id IN (?)
  AND a.id = c.account_id
  AND p.id = a.partner_id;

update `calls`
set `due_at` = ?, `held_until` = ?, `first_attempt_at` = ?
where (`campaign_id`, `contact_id`) in (values (?, ?))
  and `due_at` <= ?
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')));

update `calls`
set `due_at` = ?, `held_until` = ?, `first_attempt_at` = ?
where (`campaign_id`, `contact_id`) in (values (?, ?), (?, ?), (?, ?), (?, ?), (?, ?))
  and `due_at` <= ?
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')));

update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'blocked'
  WHEN 'retry' THEN 'blocked'
END, `ended_at` = ?, `due_at` = ?, `detail` = ?
where (`campaign_id`, `contact_id`) in (values (?, ?))
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')));

update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'blocked'
  WHEN 'retry' THEN 'blocked'
END, `ended_at` = ?, `due_at` = ?, `detail` = ?
where (`campaign_id`, `contact_id`) in (values (?, ?))
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  and (
    SELECT 1
    FROM accounts la
    CROSS JOIN partners lp
    WHERE la.id = calls.account_id
      AND lp.id = la.partner_id
      AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
          AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id)
          AND (d.ends_at IS NULL OR d.ends_at >= ?)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL;

-- dialing.settle

update `calls`
set `handoff` = ?, `dialed_at` = ?, `due_at` = ?, `detail` = ?
where `contact_id` = ?
  and `handoff` is not null
  and ((state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
  and `attempt` = ?;

update `calls`
set `handoff` = ?, `due_at` = ?, `detail` = ?
where `contact_id` = ?
  and `handoff` is not null
  and ((state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
  and `attempt` = ?;

UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = k.cancelling_since, ended_at = k.cancelling_since
FROM (
  SELECT value->>0 AS campaign_id, value->>1 AS contact_id
  FROM jsonb_each(?)
) AS r
CROSS JOIN retired_api_keys k
WHERE calls.campaign_id = r.campaign_id
  AND calls.contact_id = r.contact_id
  AND ((state = 'dialing' AND handoff IN ('retry')))
  AND k.id = calls.api_key_id
  AND k.cancelling_since IS NOT NULL
RETURNING calls.contact_id;

update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'blocked'
  WHEN 'retry' THEN 'blocked'
END, `ended_at` = ?, `due_at` = ?, `detail` = ?
where (`campaign_id`, `contact_id`) in (values (?, ?))
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  and (
    SELECT 1
    FROM accounts la
    CROSS JOIN partners lp
    WHERE la.id = calls.account_id
      AND lp.id = la.partner_id
      AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
          AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id)
          AND (d.ends_at IS NULL OR d.ends_at >= ?)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL;

UPDATE calls
SET state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds
FROM (
  SELECT value->>0 AS contact_id, value->>1 AS outcome, value->>2 AS detail, value->>3 AS ended_at, value->>4 AS duration_seconds,
    value->>5 AS attempt
  FROM jsonb_each(?)
) AS r
WHERE calls.contact_id = r.contact_id
  AND handoff IS NOT NULL
  AND ((state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
  AND calls.attempt = r.attempt
RETURNING calls.contact_id;

-- dialing.reportOutcome

UPDATE calls
SET state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds,
  handoff = 'taken', dialed_at = coalesce(dialed_at, first_attempt_at), told_late_at = CASE WHEN (state = 'unknown') THEN r.told_at END
FROM (
  SELECT value->>0 AS contact_id, value->>1 AS outcome, value->>2 AS detail, value->>3 AS ended_at, value->>4 AS duration_seconds,
    value->>5 AS told_at
  FROM jsonb_each(?)
) AS r
WHERE calls.contact_id = r.contact_id
  AND handoff IS NOT NULL
  AND (state = 'unknown' OR (state = 'dialing' AND handoff IN ('open', 'retry', 'doubt', 'taken')))
  AND phone IS NOT NULL
RETURNING calls.contact_id;

select `contact_id`
from `calls`
where `contact_id` = ?
  and `handoff` is not null
limit ?;

select `campaign_id`, `account_id`, `phone`
from `calls`
where `contact_id` = ?
  and `handoff` is not null
limit ?;

select `partner_id`, `opt_outs_for_partner`
from `accounts`
where `id` = ?
limit ?;

delete from `do_not_call`
where `scope_id` = ?
  and `phone` in (?)
  and `ends_at` < ?;

insert into `do_not_call` (`account_id`, `campaign_id`, `contact_id`, `created_at`, `created_by_id`,
  `created_by_name`, `ends_at`, `id`, `note`, `partner_id`, `phone`, `reason`, `scope_id`, `source`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (`scope_id`, `phone`)
do update set `ends_at` = excluded.ends_at
where do_not_call.ends_at IS NOT NULL
  AND (excluded.ends_at IS NULL OR excluded.ends_at > do_not_call.ends_at)
returning `id`;

update `accounts`
set `lists_numbers` = ?
where `id` = ?
  and `lists_numbers` is null;

update `partners`
set `lists_version` = CASE WHEN lists_version >= ? THEN lists_version + 1 ELSE ? END
where `id` = ?
returning `lists_version`;

insert into `do_not_call_additions` (`partner_id`, `phones`, `version`)
values (?, ?, ?);

insert into `do_not_call_sweeps` (`account_id`, `partner_id`, `scope_id`, `token`)
values (?, ?, ?, ?)
on conflict (`scope_id`)
do update set `token` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- dialing.lapse

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where (state = 'queued')
    and `not_after` is not null
    and `not_after` < ?
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'lapsed'
  WHEN 'retry' THEN 'lapsed'
END, `ended_at` = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, `due_at` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where ((state = 'dialing' AND handoff IN ('retry')))
    and `not_after` is not null
    and `not_after` < ?
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'lapsed'
  WHEN 'retry' THEN 'lapsed'
END, `ended_at` = CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END, `due_at` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

-- dialing.endForgotten

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where `due_at` is not null
    and `due_at` < ?
    and (NOT (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) or `not_after` is null)
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'lapsed'
  WHEN 'retry' THEN 'lapsed'
  WHEN 'open' THEN 'unknown'
  WHEN 'doubt' THEN 'unknown'
  WHEN 'taken' THEN 'unknown'
END, `ended_at` = due_at + 2592000000, `due_at` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

-- dialing.recoverFromClockStep

select `newest_at`
from `clock`
limit ?;

delete from `dialer_troubles`
where `noted_at` > ?;

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id, CASE
  WHEN due_at > 1795251900000 AND (((state = 'queued') AND (held_until IS NOT NULL OR (held_until IS NULL AND due_at > coalesce(not_before, 0)))) OR (((state = 'dialing' AND handoff IN ('retry'))) AND (held_until IS NOT NULL OR (held_until IS NULL AND not_after IS NULL AND due_at > 1795255500000))) OR (((state = 'dialing' AND handoff IN ('open'))) AND due_at > 1795251930000) OR (((state = 'dialing' AND handoff IN ('doubt'))) AND not_after IS NULL AND first_attempt_at > 1795251900000) OR (((state = 'dialing' AND handoff IN ('open',
    'retry', 'doubt', 'taken'))) AND due_at > 1795266300000)) THEN 1
  ELSE 0
END AS flag
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?, ?)
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT ?;

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where (`campaign_id`, `contact_id`) in (values (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?))
    and due_at > 1795251900000
    AND (((state = 'queued') AND (held_until IS NOT NULL OR (held_until IS NULL AND due_at > coalesce(not_before, 0)))) OR (((state = 'dialing' AND handoff IN ('retry'))) AND (held_until IS NOT NULL OR (held_until IS NULL AND not_after IS NULL AND due_at > 1795255500000))) OR (((state = 'dialing' AND handoff IN ('open'))) AND due_at > 1795251930000) OR (((state = 'dialing' AND handoff IN ('doubt'))) AND not_after IS NULL AND first_attempt_at > 1795251900000) OR (((state = 'dialing' AND handoff IN ('open',
    'retry', 'doubt', 'taken'))) AND due_at > 1795266300000))
  limit ?
)
update `calls`
set `due_at` = CASE
  WHEN (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) AND not_before > ? THEN not_before
  ELSE CAST(? AS bigint)
END, `held_until` = ?, `first_attempt_at` = CASE
  WHEN NOT (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) THEN first_attempt_at
END
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

-- dialing.noteTrouble

delete from `dialer_troubles`
where `core` = ?
  or `noted_at` < ?;

insert into `dialer_troubles` (`core`, `noted_at`, `reason`, `since`)
values (?, ?, ?, ?);

-- dialing.findTrouble

select `since`, `reason`
from `dialer_troubles`
where `noted_at` >= ?
order by `since` asc
limit ?;

-- dialing.queue

select count(*) as `due`, min(`due_at`) as `oldest`
from `calls`
where `due_at` is not null
  and `due_at` <= ?
  and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry', 'doubt')))
limit ?;

-- callList.hasCampaign

select `c`.`id`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
where `a`.`id` = ?
  and `c`.`id` = ?
limit ?;

-- callList.list

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 0
) AS contact_id
FROM campaigns s
WHERE s.id IN (?)
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT placed_at
FROM calls
WHERE campaign_id = ?
  AND contact_id = ?;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id = ?
    AND contact_id >= ?
  ORDER BY contact_id DESC
  LIMIT 1
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

with `some` as materialized (
  select *
  from `api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `u`.`name` as `creator_name`
from `some` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?;

with `some` as materialized (
  select *
  from `retired_api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `k`.`creator_name`
from `some` as `k`
where `k`.`creator_id` = ?;

select `id`, `name`
from `campaigns`
where `id` in (?);

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 0
) AS contact_id
FROM campaigns s
WHERE s.id IN (?, ?)
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.id IN (?, ?)
  )
    AND contact_id >= ?
  ORDER BY contact_id DESC
  LIMIT 1
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 0
) AS contact_id
FROM campaigns s
WHERE s.account_id = ?
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND contact_id >= ?
  ORDER BY contact_id DESC
  LIMIT 1
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 0
) AS contact_id
FROM accounts o
JOIN campaigns s ON s.account_id = o.id
WHERE o.partner_id = ?
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM accounts o
    JOIN campaigns s ON s.account_id = o.id
    WHERE o.partner_id = ?
  )
    AND contact_id >= ?
  ORDER BY contact_id DESC
  LIMIT 1
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 0
) AS contact_id
FROM campaigns s
WHERE 1 = 0
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE 1 = 0
  )
  ORDER BY contact_id DESC
  LIMIT 1
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

with `some` as materialized (
  select *
  from `api_keys`
  where 1 = ?
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `u`.`name` as `creator_name`
from `some` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?;

with `some` as materialized (
  select *
  from `retired_api_keys`
  where 1 = ?
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `k`.`creator_name`
from `some` as `k`
where `k`.`creator_id` = ?;

select `id`, `name`
from `campaigns`
where 1 = ?;

SELECT count(*) AS calls
FROM (
  SELECT 1
  FROM calls
  WHERE account_id IN (
    SELECT s.account_id
    FROM campaigns s
    WHERE s.id IN (?)
  )
    AND due_at IS NOT NULL
  LIMIT 5001
) AS matching;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE account_id IN (
    SELECT s.account_id
    FROM campaigns s
    WHERE s.id IN (?)
  )
    AND due_at IS NOT NULL
    AND (campaign_id || '') IN (
      SELECT s.id
      FROM campaigns s
      WHERE s.id IN (?)
    )
    AND state IN (?, ?)
    AND api_key_id = ?
    AND (phone GLOB ? OR name GLOB ? OR request_id GLOB ? OR phone GLOB ?)
    AND contact_id >= ?
    AND contact_id < ?
    AND placed_at >= ?
    AND placed_at < ?
  ORDER BY contact_id DESC
  LIMIT 100
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

SELECT count(*) AS calls
FROM campaigns s
WHERE s.account_id = ?;

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 4999
) AS contact_id
FROM campaigns s
WHERE s.account_id = ?
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND (phone GLOB ? OR name GLOB ? OR request_id GLOB ?)
  ORDER BY contact_id DESC
  LIMIT 100
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
    AND state = asked.column1
    AND state NOT IN ('queued', 'dialing', 'completed')
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 99
) AS contact_id
FROM (VALUES (?), (?)) AS asked
CROSS JOIN campaigns s
WHERE s.account_id = ?
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT calls.campaign_id, calls.request_id, calls.contact_id, calls.api_key_id, calls.phone, calls.name,
  calls.state, calls.detail, calls.placed_at, calls.dialed_at, calls.ended_at, calls.provider,
  calls.held_until, calls.time_zone
FROM (
  SELECT campaign_id, contact_id
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND state IN (?, ?)
    AND state NOT IN ('queued', 'dialing', 'completed')
  ORDER BY contact_id DESC
  LIMIT 100
) AS page
CROSS JOIN calls
WHERE calls.campaign_id = page.campaign_id
  AND calls.contact_id = page.contact_id
ORDER BY calls.contact_id DESC;

-- callList.countUpTo

SELECT count(*) AS calls
FROM (
  SELECT 1
  FROM calls
  WHERE campaign_id = ?
  LIMIT 1000
) AS matching;

SELECT sum(calls) AS calls
FROM (
  SELECT c.calls
  FROM (
    SELECT s.id
    FROM campaigns s
    WHERE s.id IN (?)
  ) AS s
  CROSS JOIN call_counts AS c
  WHERE c.campaign_id = s.id
    AND c.state IN (?)
  LIMIT 3000
) AS counted;

SELECT count(*) AS calls
FROM (
  SELECT 1
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND state IN (?)
    AND state NOT IN ('queued', 'dialing', 'completed')
    AND contact_id >= ?
    AND contact_id < ?
  UNION ALL
  SELECT 1
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND state IN (?)
    AND state NOT IN ('queued', 'dialing', 'completed')
    AND contact_id >= ?
    AND contact_id < ?
    AND placed_at >= ?
    AND placed_at < ?
  UNION ALL
  SELECT 1
  FROM calls
  WHERE campaign_id IN (
    SELECT s.id
    FROM campaigns s
    WHERE s.account_id = ?
  )
    AND state IN (?)
    AND state NOT IN ('queued', 'dialing', 'completed')
    AND contact_id >= ?
    AND contact_id < ?
    AND placed_at >= ?
    AND placed_at < ?
  LIMIT 1000
) AS matching;

-- callList.count

SELECT count(*) AS calls
FROM campaigns s
WHERE s.id IN (?);

SELECT s.id AS start, (
  SELECT contact_id
  FROM calls
  WHERE campaign_id = s.id
  ORDER BY contact_id DESC
  LIMIT 1 OFFSET 4999
) AS contact_id
FROM campaigns s
WHERE s.id IN (?)
ORDER BY contact_id DESC NULLS LAST
LIMIT 1;

SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls
FROM (
  SELECT campaign_id, placed_at, state
  FROM calls
  WHERE campaign_id = ?
) AS matching
GROUP BY 1, 2, 3;

-- callList.seesKey

with `some` as materialized (
  select *
  from `api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `u`.`name` as `creator_name`
from `some` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?;

with `some` as materialized (
  select *
  from `retired_api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `k`.`creator_name`
from `some` as `k`
where `k`.`creator_id` = ?;

-- callList.find

select `campaign_id`, `request_id`, `contact_id`, `api_key_id`, `phone`, `name`, `state`, `detail`,
  `placed_at`, `dialed_at`, `ended_at`, `provider`, `held_until`, `time_zone`, `variables`, `not_before`,
  `not_after`, `duration_seconds`, `attempt`, `first_attempt_at`, `due_at`, `handoff`, `told_late_at`
from `calls`
where `campaign_id` = ?
  and `contact_id` = ?
limit ?;

with `some` as materialized (
  select *
  from `api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `u`.`name` as `creator_name`
from `some` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?;

with `some` as materialized (
  select *
  from `retired_api_keys`
  where `id` in (?)
)
select `k`.`id`, `k`.`name`, `k`.`creator_id`, `k`.`creator_name`
from `some` as `k`
where `k`.`creator_id` = ?;

select `id`, `name`
from `campaigns`
where `id` in (?);

-- callList.summary

SELECT quarter_at, state, calls
FROM call_counts
WHERE campaign_id = ?
  AND quarter_at >= ?
UNION ALL
SELECT placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls
FROM calls
WHERE account_id = (
  SELECT account_id
  FROM campaigns
  WHERE id = ?
)
  AND due_at IS NOT NULL
  AND (campaign_id || '') = ?
  AND placed_at >= ?
GROUP BY 1, 2;

-- callList.summaryOfAll

WITH days (from_at, until_at) AS (VALUES (CAST(? AS bigint), CAST(? AS bigint))), scope AS (
  SELECT id, account_id
  FROM campaigns
  WHERE id IN (?)
)
SELECT s.id AS campaign_id, d.from_at AS quarter_at, t.key AS state, t.value AS calls
FROM days d
CROSS JOIN scope s
CROSS JOIN json_each((
  SELECT json_group_object(state, calls)
  FROM (
    SELECT t.state, sum(t.calls) AS calls
    FROM call_counts t
    WHERE t.campaign_id = s.id
      AND t.quarter_at >= d.from_at
      AND t.quarter_at < d.until_at
    GROUP BY t.state
  )
)) AS t
UNION ALL
SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls
FROM calls
WHERE account_id IN (
  SELECT account_id
  FROM scope
)
  AND due_at IS NOT NULL
  AND (campaign_id || '') IN (
    SELECT id
    FROM scope
  )
  AND placed_at >= ?
GROUP BY 1, 2, 3;
