-- apiKeys.create

select `partner_id`
from `users`
where `id` = ?
  and `disabled_at` is null
limit ?;

SELECT (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = ?
      AND expires_at IS NULL
    LIMIT ?
  ) AS endless
) + (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = ?
      AND expires_at >= ?
    LIMIT ?
  ) AS ending
) AS active;

insert into `api_keys` (`account_id`, `created_at`, `creator_id`, `creator_partner_id`, `digest`, `expires_at`,
  `expiry_time_zone`, `id`, `last_used_at`, `name`, `partner_id`, `time_zone`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_id', creator_id, 1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND creator_id IS NOT NULL
GROUP BY creator_id
UNION ALL
SELECT 'creator_partner_id', creator_partner_id, 1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
UNION ALL
SELECT 'account_id', account_id, 1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND account_id IS NOT NULL
GROUP BY account_id
UNION ALL
SELECT 'partner_id', partner_id, 1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND partner_id IS NOT NULL
GROUP BY partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- apiKeys.limit

select `calls_per_day`
from `api_keys`
where `id` = ?
  and `limits_version` is null
limit ?;

SELECT count(*) AS placed
FROM api_keys k
CROSS JOIN accounts a
CROSS JOIN campaigns c
CROSS JOIN calls
WHERE k.id = ?
  AND a.partner_id IN (k.partner_id, k.creator_partner_id)
  AND c.account_id = a.id
  AND calls.campaign_id = c.id
  AND calls.contact_id >= ?
  AND calls.contact_id < ?
  AND calls.api_key_id = k.id
  AND calls.placed_at >= ?
  AND calls.placed_at < ?;

update `api_keys`
set `limits_version` = ?, `addresses` = ?, `calls_per_day` = ?
where `id` = ?
  and `limits_version` is null;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

insert into `api_key_days` (`api_key_id`, `day`, `placed`)
values (?, ?, ?)
on conflict (`api_key_id`, `day`)
do update set `api_key_id` = excluded.`api_key_id`;

update `api_key_days`
set `placed` = ?
where `api_key_id` = ?
  and `day` = ?;

-- apiKeys.addresses

select *
from `api_key_addresses`
where `api_key_id` = ?
  and `used_at` >= ?
order by `used_at` desc
limit ?;

-- apiKeys.recount

SELECT count(*) AS placed
FROM api_keys k
CROSS JOIN accounts a
CROSS JOIN campaigns c
CROSS JOIN calls
WHERE k.id = ?
  AND a.partner_id IN (k.partner_id, k.creator_partner_id)
  AND c.account_id = a.id
  AND calls.campaign_id = c.id
  AND calls.contact_id >= ?
  AND calls.contact_id < ?
  AND calls.api_key_id = k.id
  AND calls.placed_at >= ?
  AND calls.placed_at < ?;

insert into `api_key_days` (`api_key_id`, `day`, `placed`)
values (?, ?, ?)
on conflict (`api_key_id`, `day`)
do update set `api_key_id` = excluded.`api_key_id`;

update `api_key_days`
set `placed` = ?
where `api_key_id` = ?
  and `day` = ?;

-- apiKeys.placedOn

select `placed`
from `api_key_days`
where `api_key_id` = ?
  and `day` = ?
limit ?;

-- apiKeys.countActive

SELECT (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = ?
      AND expires_at IS NULL
    LIMIT ?
  ) AS endless
) + (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = ?
      AND expires_at >= ?
    LIMIT ?
  ) AS ending
) AS active;

-- apiKeys.list

select `id`
from `users`
where `deleted_at` is not null;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where `k`.`creator_id` = ?
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
    )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select sum(`keys`) as `total`
from `api_key_tallies`
where `scope` = ?
  and `id` = ?
limit ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where (`k`.`account_id` = ? or `k`.`creator_id` = ?)
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
    )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select count(*) as `total`
from `api_keys`
where `creator_id` = ?
  and (`account_id` is null or not `account_id` = ?)
limit ?;

select `id`
from `users`
where `deleted_at` is not null
union all
select `id`
from `users`
where `moving_keys` is not null
  and not `partner_id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where `k`.`creator_partner_id` = ?
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
      union all
      select `id`
      from `users`
      where `moving_keys` is not null
        and not `partner_id` = ?
    )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where `k`.`account_id` = ?
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
    )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where `k`.`creator_id` not in (
    select `id`
    from `users`
    where `deleted_at` is not null
  )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select count(*) as `total`
from `api_keys` as `k`
limit ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where 1 = 0
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
    )
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select count(*) as `total`
from `api_keys` as `k`
where 1 = 0
limit ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`id` in (
  select `k`.`id`
  from `api_keys` as `k`
  where `k`.`creator_id` = ?
    and `k`.`creator_id` not in (
      select `id`
      from `users`
      where `deleted_at` is not null
    )
    and (k.created_at, k.id) < (?, ?)
  order by `k`.`created_at` desc, `k`.`id` desc
  limit ?
)
order by `k`.`created_at` desc, `k`.`id` desc;

select count(*) as `total`
from `api_keys`
where `creator_id` = ?
  and `creator_id` in (?)
limit ?;

-- apiKeys.find

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where (`k`.`account_id` = ? or `k`.`creator_id` = ?)
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where coalesce(u.partner_id, k.partner_id) = ?
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`account_id` = ?
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `u`.`deleted_at` is null
  and `k`.`id` = ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where 1 = 0
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

-- apiKeys.page

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?
  and `k`.`creator_id` not in (
    select `id`
    from `users`
    where `deleted_at` is not null
  )
order by `k`.`id` desc
limit ?;

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?
  and `k`.`creator_id` not in (
    select `id`
    from `users`
    where `deleted_at` is not null
  )
  and `k`.`id` < ?
order by `k`.`id` desc
limit ?;

-- apiKeys.findAll

with `some` as materialized (
  select *
  from `api_keys`
  where `id` in (?)
)
select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `some` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?
  and `u`.`deleted_at` is null;

-- apiKeys.findByDigest

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
where `k`.`creator_id` = ?
  and `u`.`deleted_at` is null
  and `k`.`digest` = ?;

-- apiKeys.details

select `k`.*, `u`.`name` as `creator_name`, `u`.`email` as `creator_email`, `u`.`disabled_at` as `creator_disabled_at`,
  `u`.`last_sign_in_at` as `creator_seen_at`, `u`.`partner_id` as `creator_current_partner_id`, `ca`.`name` as `created_account_name`,
  `cp`.`name` as `created_partner_name`, `ra`.`id` as `reached_account_id`, `ra`.`name` as `reached_account_name`,
  `rp`.`id` as `reached_partner_id`, `rp`.`name` as `reached_partner_name`
from `api_keys` as `k`
inner join `users` as `u` on `u`.`id` = `k`.`creator_id`
left join `accounts` as `ca` on `ca`.`id` = `k`.`account_id`
inner join `partners` as `cp` on `cp`.`id` = `k`.`partner_id`
left join `accounts` as `ra` on `ra`.`id` = CASE u.user_type WHEN 'account' THEN u.account_id WHEN 'staff' THEN k.account_id END
inner join `partners` as `rp` on `rp`.`id` = CASE u.user_type WHEN 'staff' THEN k.partner_id ELSE u.partner_id END
where `k`.`creator_id` = ?
  and `u`.`deleted_at` is null
  and `k`.`id` = ?;

-- apiKeys.usage

select *
from `api_key_usage`
where `api_key_id` = ?
  and `quarter_at` >= ?;

-- apiKeys.countQueuedCalls

SELECT api_key_id, count(*) AS calls
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND api_key_id IN (?)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
GROUP BY api_key_id;

-- apiKeys.revoke

select `id`
from `api_keys`
where `id` in (?)
order by `id` asc;

insert into `retired_api_keys` (`id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`,
  `creator_name`, `retired_at`, `cancelling_since`)
select `id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`, (
  select `name`
  from `users`
  where `users`.`id` = `api_keys`.`creator_id`
) as `creator_name`, CAST(? AS bigint), CAST(? AS bigint)
from `api_keys`
where `id` in (?);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_id', creator_id, -1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND creator_id IS NOT NULL
GROUP BY creator_id
UNION ALL
SELECT 'creator_partner_id', creator_partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
UNION ALL
SELECT 'account_id', account_id, -1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND account_id IS NOT NULL
GROUP BY account_id
UNION ALL
SELECT 'partner_id', partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?)
  AND partner_id IS NOT NULL
GROUP BY partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

delete from `api_keys`
where `id` in (?);

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?, ?)
  AND api_key_id IN (?)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT ?;

WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (
    SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS at
    FROM jsonb_each(?)
  ) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id
    AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
)
UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
FROM found
WHERE calls.campaign_id = found.campaign_id
  AND calls.contact_id = found.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.contact_id;

SELECT DISTINCT api_key_id
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND due_at > ?
  AND api_key_id IN (?)
  AND ((state = 'dialing' AND handoff IN ('open')));

update `retired_api_keys`
set `cancelling_since` = ?
where `id` in (?);

-- apiKeys.finishCancelling

select `id`
from `retired_api_keys`
where `cancelling_since` is not null
  and `id` > ?
order by `id` asc
limit ?;

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?, ?)
  AND EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.cancelling_since IS NOT NULL
  )
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT ?;

WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (
    SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS at
    FROM jsonb_each(?)
  ) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id
    AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
)
UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
FROM found
WHERE calls.campaign_id = found.campaign_id
  AND calls.contact_id = found.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.contact_id;

SELECT DISTINCT api_key_id
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND due_at > ?
  AND EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.cancelling_since IS NOT NULL
  )
  AND ((state = 'dialing' AND handoff IN ('open')));

update `retired_api_keys`
set `cancelling_since` = ?
where `id` in (?);

-- apiKeys.countByDaysLeft

WITH bounds (now, week, month) AS (VALUES (CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint)))
SELECT (
  SELECT count(*)
  FROM api_keys
  WHERE expires_at < now
) AS "expired", (
  SELECT count(*)
  FROM api_keys
  WHERE expires_at >= now
    AND expires_at <= week
) AS "7", (
  SELECT count(*)
  FROM api_keys
  WHERE expires_at > week
    AND expires_at <= month
) AS "30", (
  SELECT count(*)
  FROM api_keys
  WHERE expires_at > month
) AS "more", (
  SELECT count(*)
  FROM api_keys
  WHERE expires_at IS NULL
) AS "never"
FROM bounds;

-- keyUse.write

UPDATE api_keys
SET last_used_at = r.at, last_used_address = r.address
FROM (
  SELECT value->>0 AS digest, value->>1 AS at, value->>2 AS address
  FROM jsonb_each(?)
) AS r
WHERE api_keys.digest = r.digest
  AND (api_keys.last_used_at IS NULL OR api_keys.last_used_at < r.at);

INSERT INTO api_key_addresses (api_key_id, address, used_at)
SELECT k.id, r.address, r.at
FROM (
  SELECT value->>0 AS digest, value->>1 AS address, value->>2 AS at
  FROM jsonb_each(?)
) AS r
CROSS JOIN api_keys k
WHERE k.digest = r.digest
ON CONFLICT (api_key_id, address)
DO UPDATE SET used_at = excluded.used_at
WHERE api_key_addresses.used_at < excluded.used_at;

INSERT INTO api_key_usage (api_key_id, quarter_at, placed, cancelled, refused)
SELECT k.id, r.quarter_at, r.placed, r.cancelled, r.refused
FROM (
  SELECT value->>0 AS digest, value->>1 AS quarter_at, value->>2 AS placed, value->>3 AS cancelled, value->>4 AS refused
  FROM jsonb_each(?)
) AS r
CROSS JOIN api_keys k
WHERE k.digest = r.digest
ON CONFLICT (api_key_id, quarter_at)
DO UPDATE SET placed = api_key_usage.placed + excluded.placed, cancelled = api_key_usage.cancelled + excluded.cancelled,
  refused = api_key_usage.refused + excluded.refused;
