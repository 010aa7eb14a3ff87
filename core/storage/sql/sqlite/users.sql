-- users.count

select count(*) as `users`
from `users`
where `deleted_at` is null
limit ?;

-- users.list

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `u`.`account_id` = ?
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `u`.`partner_id` = ?
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `u`.`user_type` = ?
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and 1 = 0
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and (u.created_at, u.id) > (?, ?)
  and COALESCE(u.last_sign_in_at, u.created_at) < ?
  and (u.name GLOB ? OR u.email GLOB ?)
order by `u`.`created_at` asc, `u`.`id` asc
limit ?;

-- users.find

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`created_at`, `u`.`last_sign_in_at`, `u`.`disabled_at`, `l`.`issuer`, `l`.`subject`,
  `l`.`linked_at`, `sf`.`confirmed_at`, (
    select sum(`keys`)
    from `api_key_tallies`
    where `scope` = ?
      and `id` = `u`.`id`
  ) as `api_keys`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `u`.`id` = ?;

-- users.deletionImpact

select `id`, `name`, `created_at`, `last_used_at`, `expires_at`
from `api_keys`
where `creator_id` = ?
order by `created_at` desc, `id` desc
limit ?;

SELECT api_key_id, count(*) AS calls
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND api_key_id IN (?)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
GROUP BY api_key_id;

select count(*) as `sessions`
from `sessions`
where `user_id` = ?
  and `half_open_until` is null
limit ?;

select `id`, `name`, `created_at`, `last_used_at`, `expires_at`
from `api_keys`
where `creator_id` = ?
  and (created_at, id) < (?, ?)
order by `created_at` desc, `id` desc
limit ?;

-- users.findByEmail

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`password_hash`, `u`.`password_expires_at`, `u`.`disabled_at`, `sf`.`confirmed_at`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `u`.`email` = ?;

-- users.create

insert into `users` (`account_id`, `created_at`, `email`, `id`, `name`, `partner_id`, `password_expires_at`,
  `password_hash`, `user_type`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- users.setPassword

select `id`
from `users`
where `id` = ?
  and `deleted_at` is null
limit ?;

update `users`
set `password_hash` = ?, `password_expires_at` = ?
where `id` = ?;

delete from `sessions`
where `user_id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

select `id`
from `sessions`
where `id` = ?
limit ?;

delete from `sessions`
where `user_id` = ?
  and not `id` = ?;

select `id`
from `users`
where `id` = ?
  and `deleted_at` is null
  and `password_hash` = ?
limit ?;

-- users.change

select `partner_id`
from `users`
where `id` = ?
  and `deleted_at` is null
  and `name` = ?
  and `user_type` = ?
  and `account_id` = ?
  and `partner_id` = ?
limit ?;

update `users`
set `name` = ?, `user_type` = ?, `account_id` = ?, `partner_id` = ?
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

select `id`
from `api_keys`
where `creator_id` = ?
order by `created_at` desc, `id` desc
limit ?;

select `id`
from `api_keys`
where 1 = ?
order by `id` asc;

update `api_keys`
set `creator_partner_id` = `partner_id`
where 1 = ?;

update `users`
set `moving_keys` = ?
where `id` = ?;

-- users.setDisabled

update `users`
set `disabled_at` = ?
where `id` = ?
  and `deleted_at` is null
  and `disabled_at` is null;

delete from `sessions`
where `user_id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

update `users`
set `disabled_at` = ?
where `id` = ?
  and `deleted_at` is null
  and `disabled_at` is not null;

-- users.delete

select `id`
from `users`
where `id` = ?
  and `deleted_at` is null
limit ?;

delete from `sessions`
where `user_id` = ?;

delete from `second_factors`
where `user_id` = ?
  and `confirmed_at` is not null;

delete from `second_factors`
where `user_id` = ?;

select sum(`keys`) as `keys`
from `api_key_tallies`
where `scope` = ?
  and `id` = ?
limit ?;

delete from `sign_in_codes`
where `user_id` = ?;

delete from `oidc_links`
where `user_id` = ?;

update `users`
set `deleted_at` = ?, `disabled_at` = ?, `cancelling_since` = ?, `moving_keys` = ?, `email` = ?, `external_id` = ?
where `id` = ?;

select `id`
from `api_keys`
where `creator_id` = ?
order by `created_at` desc, `id` desc
limit ?;

select `id`
from `api_keys`
where `id` in (?, …)
order by `id` asc;

insert into `retired_api_keys` (`id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`,
  `creator_name`, `retired_at`, `cancelling_since`)
select `id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`, (
  select `name`
  from `users`
  where `users`.`id` = `api_keys`.`creator_id`
) as `creator_name`, CAST(? AS bigint), CAST(? AS bigint)
from `api_keys`
where `id` in (?, …);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_id', creator_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_id IS NOT NULL
GROUP BY creator_id
UNION ALL
SELECT 'creator_partner_id', creator_partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
UNION ALL
SELECT 'account_id', account_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND account_id IS NOT NULL
GROUP BY account_id
UNION ALL
SELECT 'partner_id', partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND partner_id IS NOT NULL
GROUP BY partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

delete from `api_keys`
where `id` in (?, …);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?, ?)
  AND (EXISTS (
    SELECT 1
    FROM api_keys k
    WHERE k.id = calls.api_key_id
      AND k.creator_id = ?
  ) OR EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.creator_id = ?
  ))
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT ?;

select `id`
from `api_keys`
where 1 = ?
order by `id` asc;

insert into `retired_api_keys` (`id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`,
  `creator_name`, `retired_at`, `cancelling_since`)
select `id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`, (
  select `name`
  from `users`
  where `users`.`id` = `api_keys`.`creator_id`
) as `creator_name`, CAST(? AS bigint), CAST(? AS bigint)
from `api_keys`
where 1 = ?;

delete from `api_keys`
where 1 = ?;

delete from `users`
where `id` = ?;

-- users.finishDeletions

select `id`
from `users`
where `deleted_at` is not null;

select `deleted_at`, `cancelling_since`
from `users`
where `id` = ?
limit ?;

select `id`
from `api_keys`
where `creator_id` = ?
order by `created_at` desc, `id` desc
limit ?;

select `id`
from `api_keys`
where 1 = ?
order by `id` asc;

insert into `retired_api_keys` (`id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`,
  `creator_name`, `retired_at`, `cancelling_since`)
select `id`, `name`, `creator_id`, `creator_partner_id`, `account_id`, `partner_id`, (
  select `name`
  from `users`
  where `users`.`id` = `api_keys`.`creator_id`
) as `creator_name`, CAST(? AS bigint), CAST(? AS bigint)
from `api_keys`
where 1 = ?;

delete from `api_keys`
where 1 = ?;

delete from `users`
where `id` = ?;

-- users.finishMoves

select `id`, `partner_id`, `moving_keys`
from `users`
where `moving_keys` is not null;

select `id`, `created_at`, `partner_id`, `creator_partner_id`
from `api_keys`
where `creator_id` = ?
order by `created_at` desc, `id` desc
limit ?;

select `id`
from `users`
where `id` = ?
  and `moving_keys` = ?
  and `partner_id` = ?
limit ?;

select `id`
from `api_keys`
where `id` in (?, …)
order by `id` asc;

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_partner_id', creator_partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

update `api_keys`
set `creator_partner_id` = ?
where `id` in (?, …);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_partner_id', creator_partner_id, 1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

select `id`, `created_at`, `partner_id`, `creator_partner_id`
from `api_keys`
where `creator_id` = ?
  and (created_at, id) < (?, ?)
order by `created_at` desc, `id` desc
limit ?;

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_partner_id', creator_partner_id, -1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_partner_id', creator_partner_id, 1 * count(*)
FROM api_keys
WHERE id IN (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
ON CONFLICT (scope, id)
DO UPDATE SET keys = api_key_tallies.keys + excluded.keys;

update `users`
set `moving_keys` = ?
where `id` = ?;

-- sessions.start

select `id`
from `users`
where `id` = ?
  and `password_hash` = ?
  and `disabled_at` is null
limit ?;

insert into `sessions` (`half_open_until`, `id`, `issuer`, `last_seen_at`, `started_at`, `user_id`)
values (?, ?, ?, ?, ?, ?);

update `users`
set `last_sign_in_at` = ?
where `id` = ?;

delete from `sessions`
where `id` in (
  select `id`
  from `sessions`
  where `user_id` = ?
    and not `id` = ?
    and `half_open_until` is null
  order by `last_seen_at` desc
  limit ? offset ?
);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

delete from `sessions`
where `id` in (
  select `id`
  from `sessions`
  where `user_id` = ?
    and not `id` = ?
    and `half_open_until` is not null
  order by `last_seen_at` desc
  limit ? offset ?
);

-- sessions.finish

select `id`
from `users`
where `id` = ?
  and `disabled_at` is null
limit ?;

select `id`
from `sessions`
where `id` = ?
  and `user_id` = ?
  and `half_open_until` >= ?
limit ?;

update `second_factors`
set `last_step` = ?
where `user_id` = ?
  and `confirmed_at` is not null
  and (last_step IS NULL OR last_step < ? OR last_step > ?);

delete from `sessions`
where `id` = ?;

insert into `sessions` (`half_open_until`, `id`, `issuer`, `last_seen_at`, `started_at`, `user_id`)
values (?, ?, ?, ?, ?, ?);

update `users`
set `last_sign_in_at` = ?
where `id` = ?;

delete from `sessions`
where `id` in (
  select `id`
  from `sessions`
  where `user_id` = ?
    and not `id` = ?
    and `half_open_until` is null
  order by `last_seen_at` desc
  limit ? offset ?
);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- sessions.find

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`password_expires_at`, `s`.`tenancy_kind`, `s`.`started_at`, `s`.`last_seen_at`,
  `s`.`issuer`, `s`.`half_open_until`, `sf`.`confirmed_at`, `ta`.`id` as `tenancy_account_id`, `ta`.`name` as `tenancy_account_name`,
  `ta`.`partner_id` as `tenancy_account_partner_id`, `tap`.`name` as `tenancy_account_partner_name`, `tp`.`id` as `tenancy_partner_id`,
  `tp`.`name` as `tenancy_partner_name`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
inner join `sessions` as `s` on `s`.`user_id` = `u`.`id`
left join `accounts` as `ta` on `ta`.`id` = `s`.`tenancy_id`
  and `s`.`tenancy_kind` = ?
left join `partners` as `tap` on `tap`.`id` = `ta`.`partner_id`
left join `partners` as `tp` on `tp`.`id` = `s`.`tenancy_id`
  and `s`.`tenancy_kind` = ?
left join `second_factors` as `sf` on `sf`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `s`.`id` = ?;

-- sessions.touch

update `sessions`
set `last_seen_at` = ?
where `id` = ?;

-- sessions.selectTenancy

update `sessions`
set `tenancy_kind` = ?, `tenancy_id` = ?
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- sessions.end

delete from `sessions`
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- sessions.endAll

delete from `sessions`
where `user_id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- sessions.startLinked

select `id`
from `users`
where `id` = ?
  and `disabled_at` is null
limit ?;

select `user_id`
from `oidc_links`
where `user_id` = ?
  and `issuer` = ?
limit ?;

insert into `sessions` (`half_open_until`, `id`, `issuer`, `last_seen_at`, `started_at`, `user_id`)
values (?, ?, ?, ?, ?, ?);

update `users`
set `last_sign_in_at` = ?
where `id` = ?;

delete from `sessions`
where `id` in (
  select `id`
  from `sessions`
  where `user_id` = ?
    and not `id` = ?
    and `half_open_until` is null
  order by `last_seen_at` desc
  limit ? offset ?
);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- sessions.sweep

delete from `sessions`
where `started_at` not between ? and ?
  or `last_seen_at` not between ? and ?
  or `half_open_until` < ?
  or (`issuer` is not null);

delete from `sessions`
where `started_at` not between ? and ?
  or `last_seen_at` not between ? and ?
  or `half_open_until` < ?
  or (`issuer` is not null and not `issuer` = ?)
  or `issuer` is null;

-- links.find

select `u`.`id`, `u`.`email`, `u`.`name`, `u`.`user_type`, `u`.`account_id`, `u`.`partner_id`, `ua`.`name` as `account_name`,
  `up`.`name` as `partner_name`, `u`.`disabled_at`
from `users` as `u`
left join `accounts` as `ua` on `ua`.`id` = `u`.`account_id`
left join `partners` as `up` on `up`.`id` = `u`.`partner_id`
inner join `oidc_links` as `l` on `l`.`user_id` = `u`.`id`
where `u`.`deleted_at` is null
  and `l`.`issuer` = ?
  and `l`.`subject` = ?;

-- links.create

select `id`
from `users`
where `id` = ?
  and `deleted_at` is null
  and `disabled_at` is null
limit ?;

delete from `oidc_links`
where `user_id` = ?
  and not `issuer` = ?;

select `user_id`
from `oidc_links`
where `user_id` = ?
limit ?;

insert into `oidc_links` (`issuer`, `linked_at`, `subject`, `user_id`)
values (?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- links.delete

delete from `sign_in_codes`
where `user_id` = ?;

delete from `oidc_links`
where `user_id` = ?;

delete from `sessions`
where `user_id` = ?
  and `issuer` is not null;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- links.list

select `l`.*, `u`.`email`
from `oidc_links` as `l`
inner join `users` as `u` on `u`.`id` = `l`.`user_id`
where `u`.`deleted_at` is null
order by `u`.`email` asc;

-- links.createCode

insert into `sign_in_codes` (`challenge`, `digest`, `expires_at`, `issuer`, `user_id`)
values (?, ?, ?, ?, ?);

-- links.takeCode

select `digest`
from `sign_in_codes`
where `digest` = ?
limit ?;

select *
from `sign_in_codes`
where `digest` = ?
limit ?;

delete from `sign_in_codes`
where `digest` = ?;

-- links.sweepCodes

delete from `sign_in_codes`
where `expires_at` < ?;

-- secondFactors.find

select `secret`, `confirmed_at`
from `second_factors`
where `user_id` = ?
limit ?;

-- secondFactors.enroll

update `second_factors`
set `secret` = ?
where `user_id` = ?
  and `confirmed_at` is null;

insert into `second_factors` (`secret`, `user_id`)
values (?, ?)
on conflict (`user_id`) do nothing
returning `user_id`;

-- secondFactors.confirm

update `second_factors`
set `confirmed_at` = ?, `last_step` = ?
where `user_id` = ?
  and `secret` = ?
  and `confirmed_at` is null;

insert into `recovery_codes` (`digest`, `user_id`)
select ? as `digest`, ? as `user_id`
union all
select ? as `digest`, ? as `user_id`;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- secondFactors.use

update `second_factors`
set `last_step` = ?
where `user_id` = ?
  and `confirmed_at` is not null
  and (last_step IS NULL OR last_step < ? OR last_step > ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

select `user_id`
from `second_factors`
where `user_id` = ?
limit ?;

delete from `recovery_codes`
where `user_id` = ?
  and `digest` = ?;

-- secondFactors.remove

update `second_factors`
set `last_step` = ?
where `user_id` = ?
  and `confirmed_at` is not null
  and (last_step IS NULL OR last_step < ? OR last_step > ?);

delete from `second_factors`
where `user_id` = ?
  and `confirmed_at` is not null;

delete from `second_factors`
where `user_id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- secondFactors.renew

select `user_id`
from `second_factors`
where `user_id` = ?
limit ?;

delete from `recovery_codes`
where `user_id` = ?
  and `digest` = ?;

delete from `recovery_codes`
where `user_id` = ?;

insert into `recovery_codes` (`digest`, `user_id`)
select ? as `digest`, ? as `user_id`
union all
select ? as `digest`, ? as `user_id`;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- secondFactors.countRecoveryCodes

select count(*) as `codes`
from `recovery_codes`
where `user_id` = ?
limit ?;

-- secondFactors.reset

delete from `second_factors`
where `user_id` = ?
  and `confirmed_at` is not null;

delete from `second_factors`
where `user_id` = ?;

delete from `sessions`
where `user_id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- secondFactors.listSealedOtherwise

select `user_id`, `secret`
from `second_factors`
where substr(secret, 1, ?) <> ?
  and `user_id` > ?
order by `user_id` asc
limit ?;

-- secondFactors.reseal

update `second_factors`
set `secret` = ?
where `user_id` = ?
  and `secret` = ?;

-- throttle.blockedUntil

SELECT asked.n, max(kept.expire) AS until
FROM sign_in_attempts AS kept
JOIN (
  SELECT *
  FROM (
    SELECT value->>0 AS n, value->>1 AS key, value->>2 AS max, value->>3 AS now, value->>4 AS until
    FROM jsonb_each(?)
  ) AS r
) AS asked ON asked.key = kept.key
WHERE kept.points >= asked.max
  AND kept.expire > asked.now
  AND kept.expire <= asked.until + 300000
GROUP BY asked.n;

-- throttle.take

WITH asked AS (
  SELECT *
  FROM (
    SELECT value->>0 AS key, value->>1 AS max, value->>2 AS now, value->>3 AS until
    FROM jsonb_each(?)
  ) AS r
)
INSERT INTO sign_in_attempts AS kept (key, points, expire)
SELECT key, 1, until
FROM asked
WHERE NOT EXISTS (
  SELECT 1
  FROM asked
  JOIN sign_in_attempts AS kept ON kept.key = asked.key
  WHERE kept.points >= asked.max
    AND kept.expire > asked.now
    AND kept.expire <= asked.until + 300000
)
ON CONFLICT (key)
DO UPDATE SET points = CASE
  WHEN kept.expire > (
    SELECT max(now)
    FROM asked
  ) AND kept.expire <= excluded.expire + 300000 THEN kept.points + 1
  ELSE 1
END, expire = CASE
  WHEN kept.expire > (
    SELECT max(now)
    FROM asked
  ) AND kept.expire <= excluded.expire + 300000 THEN kept.expire
  ELSE excluded.expire
END
RETURNING key, points;

-- throttle.giveBack

update `sign_in_attempts`
set `points` = `points` - ?
where `key` = ?
  and `points` > ?;

-- throttle.reset

delete from `sign_in_attempts`
where `key` = ?;

-- throttle.sweep

delete from `sign_in_attempts`
where `key` in (
  select `key`
  from `sign_in_attempts`
  where `expire` <= ?
    or `expire` > ?
);

delete from `sign_in_attempts`
where `key` in (
  select `key`
  from `sign_in_attempts`
  order by `points` desc, `expire` desc
  limit ? offset ?
);
