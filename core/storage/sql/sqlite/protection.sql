-- protection.addNumbers

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

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

SELECT count(*) AS calls
FROM calls
WHERE state = 'dialing'
  AND phone IN (?)
  AND ((state = 'dialing' AND handoff IN ('open', 'doubt', 'taken')))
  AND account_id = ?;

update `partners`
set `lists_numbers` = ?
where `id` = ?
  and `lists_numbers` is null;

SELECT count(*) AS calls
FROM calls
WHERE state = 'dialing'
  AND phone IN (?)
  AND ((state = 'dialing' AND handoff IN ('open', 'doubt', 'taken')))
  AND account_id IN (
    SELECT id
    FROM accounts
    WHERE partner_id = ?
  );

-- protection.lift

delete from `do_not_call`
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- protection.entriesFor

select *
from `do_not_call`
where `partner_id` in (
  select `id`
  from `partners`
)
  and `phone` = ?;

-- protection.forget

delete from `do_not_call_additions`;

delete from `do_not_call`
where `partner_id` in (
  select `id`
  from `partners`
)
  and `phone` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- protection.optOutScope

select `opt_outs_for_partner`
from `accounts`
where `id` = ?
limit ?;

-- protection.setOptOutScope

update `accounts`
set `opt_outs_for_partner` = ?
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- protection.findEntry

select *
from `do_not_call`
where `account_id` = ?
  and `id` = ?;

-- protection.listNumbers

select *
from `do_not_call`
where `account_id` = ?
order by `id` desc
limit ?;

select `id`, `name`
from `accounts`
where `id` in (?);

select `id`, `name`
from `partners`
where `id` in (?);

select *
from `do_not_call`
where `partner_id` = ?
  and `id` < ?
order by `id` desc
limit ?;

select `id`, `name`
from `accounts`
where `id` in (?, ?);

select `id`, `name`
from `partners`
where `id` in (?, ?);

-- protection.searchNumbers

select *
from `do_not_call`
where `account_id` = ?
  and `phone` >= ?
  and `phone` < ?
order by `phone` asc, `id` asc
limit ?;

select `id`, `name`
from `accounts`
where `id` in (?);

select `id`, `name`
from `partners`
where `id` in (?);

select *
from `do_not_call`
where `partner_id` = ?
  and `phone` >= ?
  and `phone` < ?
  and (phone, id) > (?, ?)
order by `phone` asc, `id` asc
limit ?;

-- protection.findBlocking

select *
from `do_not_call`
where `scope_id` in (?, ?)
  and `phone` = ?
  and (`ends_at` is null or `ends_at` >= ?);

-- protection.findScope

SELECT id, name, NULL AS account_id, id AS partner_id
FROM partners
WHERE id = ?;

SELECT id, name, id AS account_id, partner_id
FROM accounts
WHERE id = ?;

SELECT c.id, c.name, a.id AS account_id, a.partner_id
FROM campaigns c
JOIN accounts a ON a.id = c.account_id
WHERE c.id = ?;

-- protection.findRules

select *
from `protection_rules`
where `scope_id` = ?
limit ?;

-- protection.campaignRules

SELECT c.id AS campaign_id, a.id AS account_id, a.partner_id, p.rules_version, s.scope_id, s.hours,
  s.countries, s.kinds
FROM campaigns c
CROSS JOIN accounts a
CROSS JOIN partners p
LEFT JOIN protection_rules s ON s.scope_id IN (c.id, a.id, p.id)
WHERE c.id IN (?)
  AND a.id = c.account_id
  AND p.id = a.partner_id;

-- protection.setRules

update `partners`
set `rules_version` = coalesce(rules_version, 0) + 1
where `id` = ?;

insert into `protection_rules` (`countries`, `hours`, `kinds`, `partner_id`, `scope_id`)
values (?, ?, ?, ?, ?)
on conflict (`scope_id`)
do update set `countries` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- protection.blockListed

select *
from `do_not_call_sweeps`
order by `scope_id` asc;

select `id`
from `accounts`
where `partner_id` = ?
  and `id` > ?
order by `id` asc
limit ?;

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id, CASE
  WHEN (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) AND (
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
          AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL THEN 1
  ELSE 0
END AS flag
FROM calls INDEXED BY calls_due
WHERE due_at IS NOT NULL
  AND account_id = ?
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > (?, ?, ?, ?, ?)
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT ?;

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where (`campaign_id`, `contact_id`) in (values (?, ?))
    and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
    AND (
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
            AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
          LIMIT 1
        ) IS NOT NULL)
    ) IS NOT NULL
  limit ?
)
update `calls`
set `state` = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'blocked'
  WHEN 'retry' THEN 'blocked'
END, `ended_at` = ?, `due_at` = ?, `detail` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
)
  and `state` in (?, ?);

delete from `do_not_call_sweeps`
where `scope_id` = ?
  and `token` = ?;

-- protection.deleteEnded

delete from `do_not_call_additions`
where `version` < ?;

delete from `do_not_call`
where `id` in (
  select `id`
  from `do_not_call`
  where `ends_at` < ?
    and `ends_at` is not null
  limit ?
);

-- protection.countHeld

SELECT count(*) AS held
FROM calls
WHERE held_until IS NOT NULL
  AND due_at IS NOT NULL
  AND held_until > ?;

-- numberImports.begin

insert into `number_imports` (`committed_at`, `entry`, `id`, `started_at`)
values (?, ?, ?, ?);

-- numberImports.addPart

select *
from `number_imports`
where `id` = ?
limit ?;

insert into `number_import_parts` (`import_id`, `part`, `phones`)
values (?, ?, ?);

-- numberImports.commit

update `number_imports`
set `committed_at` = ?
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- numberImports.moveBatch

select *
from `number_imports`
where `id` = ?
limit ?;

select *
from `number_import_parts`
where `import_id` = ?
order by `part` asc
limit ?;

delete from `do_not_call`
where `scope_id` = ?
  and `phone` in (?, …)
  and `ends_at` < ?;

insert into `do_not_call` (`account_id`, `campaign_id`, `contact_id`, `created_at`, `created_by_id`,
  `created_by_name`, `ends_at`, `id`, `note`, `partner_id`, `phone`, `reason`, `scope_id`, `source`)
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
union all
select ? as `account_id`, ? as `campaign_id`, ? as `contact_id`, ? as `created_at`, ? as `created_by_id`, ? as `created_by_name`,
  ? as `ends_at`, ? as `id`, ? as `note`, ? as `partner_id`, ? as `phone`, ? as `reason`, ? as `scope_id`, ? as `source`
where true
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

update `number_import_parts`
set `phones` = ?
where `import_id` = ?
  and `part` = ?;

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

delete from `number_import_parts`
where `import_id` = ?
  and `part` = ?;

-- numberImports.finish

delete from `number_imports`
where `id` = ?;

-- numberImports.discard

delete from `number_imports`
where `id` = ?
  and `committed_at` is null;

delete from `number_import_parts`
where `import_id` = ?;

-- numberImports.list

select `id`, `started_at`, `committed_at`
from `number_imports`
order by `id` asc;

-- knownLists.refresh

select `campaigns`.`id` as `id`, `accounts`.`partner_id` as `partnerId`
from `campaigns`
inner join `accounts` on `accounts`.`id` = `campaigns`.`account_id`
where `campaigns`.`id` in (?);

select `id`, `lists_version`
from `partners`
where `id` in (?)
  and `lists_version` is not null;

SELECT max(phone) AS last, count(*) AS found
FROM (
  SELECT phone
  FROM do_not_call
  WHERE partner_id = ?
    AND phone > ?
  ORDER BY phone
  LIMIT 5000
) AS chunk;

SELECT max(phone) AS last, string_agg(phone, ' ') AS found
FROM (
  SELECT phone
  FROM do_not_call
  WHERE partner_id = ?
    AND phone > ?
  ORDER BY phone
  LIMIT 5000
) AS chunk;

select *
from `do_not_call_additions`
where `partner_id` = ?
  and `version` >= ?
order by `version` asc
limit ?;
