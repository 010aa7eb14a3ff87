-- tenancies.findPartner

select `id`, `name`
from `partners`
where `id` = ?;

-- tenancies.findAccount

select `id`, `name`, `partner_id`
from `accounts`
where `id` = ?;

-- tenancies.findTenancy

select `t`.`id` as `id`, `t`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`
from `accounts` as `t`
inner join `partners` as `p` on `p`.`id` = `t`.`partner_id`
where `t`.`id` = ?;

select `t`.`id` as `id`, `t`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`
from `partners` as `t`
inner join `partners` as `p` on `p`.`id` = `t`.`id`
where `t`.`id` = ?;

-- tenancies.createPartner

insert into `partners` (`created_at`, `id`, `name`)
values (?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- tenancies.createAccount

insert into `accounts` (`created_at`, `id`, `name`, `partner_id`)
values (?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- tenancies.createCampaign

insert into `campaigns` (`account_id`, `created_at`, `id`, `name`)
values (?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- tenancies.allPartners

select `id`, `name`, `external_id`
from `partners`
order by `name` asc, `id` asc;

-- tenancies.allAccounts

select `a`.`id`, `a`.`name`, `a`.`external_id`, `a`.`partner_id`, `p`.`name` as `partner_name`
from `accounts` as `a`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
order by `p`.`name` asc, `a`.`name` asc, `a`.`id` asc;

-- tenancies.allCampaigns

select `c`.`id`, `c`.`name`, `c`.`external_id`, `c`.`account_id`, `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
order by `a`.`name` asc, `c`.`name` asc, `c`.`id` asc;

-- tenancies.listAccounts

select `a`.`id`, `a`.`name`
from `accounts` as `a`
where `a`.`id` = ?
order by `a`.`name` asc, `a`.`id` asc
limit ?;

select `a`.`id`, `a`.`name`
from `accounts` as `a`
where `a`.`partner_id` = ?
order by `a`.`name` asc, `a`.`id` asc
limit ?;

select `a`.`id`, `a`.`name`
from `accounts` as `a`
where 1 = 0
order by `a`.`name` asc, `a`.`id` asc
limit ?;

select `a`.`id`, `a`.`name`
from `accounts` as `a`
where `a`.`partner_id` = ?
  and (a.name GLOB ? OR a.id = ?)
  and (a.name, a.id) > (
    select `a`.`name`, `a`.`id`
    from `accounts` as `a`
    where `a`.`partner_id` = ?
      and `a`.`id` = ?
  )
order by `a`.`name` asc, `a`.`id` asc
limit ?;

-- tenancies.listCampaigns

select `c`.`id`, `c`.`name`, `c`.`account_id`, `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
where 1 = 0
order by `a`.`name` asc, `c`.`name` asc, `c`.`id` asc
limit ?;

select `c`.`id`, `c`.`name`, `c`.`account_id`, `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
where `a`.`partner_id` = ?
  and (c.name GLOB ? OR a.name GLOB ? OR c.id = ?)
  and (a.name,c.name,c.id) > (
    select `a`.`name`, `c`.`name`, `c`.`id`
    from `campaigns` as `c`
    inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
    where `a`.`partner_id` = ?
      and `c`.`id` = ?
  )
order by `a`.`name` asc, `c`.`name` asc, `c`.`id` asc
limit ?;

-- tenancies.search

select `t`.`id`, `t`.`name`
from `partners` as `t`
order by `t`.`name` asc, `t`.`id` asc
limit ?;

select `t`.`id`, `t`.`name`, `t`.`partner_id`, `p`.`name` as `partner_name`
from `accounts` as `t`
inner join `partners` as `p` on `p`.`id` = `t`.`partner_id`
order by `t`.`name` asc, `t`.`id` asc
limit ?;

select `t`.`id`, `t`.`name`
from `partners` as `t`
where t.name GLOB ?
order by CASE
  WHEN t.name GLOB ? THEN 0
  WHEN t.name GLOB ? THEN 1
  WHEN t.name GLOB ? THEN 2
  ELSE 3
END, t.name, t.id
limit ?;

select `t`.`id`, `t`.`name`, `t`.`partner_id`, `p`.`name` as `partner_name`
from `accounts` as `t`
inner join `partners` as `p` on `p`.`id` = `t`.`partner_id`
where t.name GLOB ?
order by CASE
  WHEN t.name GLOB ? THEN 0
  WHEN t.name GLOB ? THEN 1
  WHEN t.name GLOB ? THEN 2
  ELSE 3
END, t.name, t.id
limit ?;

-- directory.setUp

select `id`
from `partners`
limit ?;

insert into `partners` (`created_at`, `id`, `name`)
values (?, ?, ?);

insert into `accounts` (`created_at`, `id`, `name`, `partner_id`)
values (?, ?, ?, ?);

insert into `campaigns` (`account_id`, `created_at`, `id`, `name`)
values (?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- directory.rename

update `partners`
set `name` = ?
where `id` = ?;

update `accounts`
set `name` = ?
where `id` = ?;

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

update `campaigns`
set `name` = ?
where `id` = ?;

-- directory.partners

select `p`.`id` as `id`, `p`.`name` as `name`
from `partners` as `p`
order by `p`.`name` asc, `p`.`id` asc
limit ?;

select `partner_id` as `id`, count(*) as `things`
from `accounts`
where `partner_id` in (?, ?, ?, ?)
group by `partner_id`;

select `p`.`id` as `id`, `p`.`name` as `name`
from `partners` as `p`
where `p`.`id` = ?
  and (p.name GLOB ? OR p.id = ?)
  and (p.name,p.id) > (
    select `p`.`name`, `p`.`id`
    from `partners` as `p`
    where `p`.`id` = ?
      and `p`.`id` = ?
  )
order by `p`.`name` asc, `p`.`id` asc
limit ?;

select `p`.`id` as `id`, `p`.`name` as `name`
from `partners` as `p`
where 1 = 0
order by `p`.`name` asc, `p`.`id` asc
limit ?;

-- directory.accounts

select `a`.`id` as `id`, `a`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`
from `accounts` as `a`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
order by `p`.`name` asc, `a`.`name` asc, `a`.`id` asc
limit ?;

select `account_id` as `id`, count(*) as `things`
from `campaigns`
where `account_id` in (?, ?)
group by `account_id`;

select `a`.`id` as `id`, `a`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`
from `accounts` as `a`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
where `p`.`id` = ?
  and `p`.`id` = ?
  and (a.name GLOB ? OR a.id = ?)
  and (p.name,a.name,a.id) > (
    select `p`.`name`, `a`.`name`, `a`.`id`
    from `accounts` as `a`
    inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
    where `p`.`id` = ?
      and `p`.`id` = ?
      and `a`.`id` = ?
  )
order by `p`.`name` asc, `a`.`name` asc, `a`.`id` asc
limit ?;

-- directory.campaigns

select `c`.`id` as `id`, `c`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`, `a`.`id` as `account_id`,
  `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
order by `p`.`name` asc, `a`.`name` asc, `c`.`name` asc, `c`.`id` asc
limit ?;

select `c`.`id` as `id`, `c`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`, `a`.`id` as `account_id`,
  `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
where `p`.`id` = ?
  and `a`.`id` = ?
  and (c.name GLOB ? OR c.id = ?)
  and (p.name,a.name,c.name,c.id) > (
    select `p`.`name`, `a`.`name`, `c`.`name`, `c`.`id`
    from `campaigns` as `c`
    inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
    inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
    where `p`.`id` = ?
      and `a`.`id` = ?
      and `c`.`id` = ?
  )
order by `p`.`name` asc, `a`.`name` asc, `c`.`name` asc, `c`.`id` asc
limit ?;

-- directory.findPartner

select `p`.`id` as `id`, `p`.`name` as `name`
from `partners` as `p`
where `p`.`id` = ?;

select `partner_id` as `id`, count(*) as `things`
from `accounts`
where `partner_id` in (?)
group by `partner_id`;

-- directory.findAccount

select `a`.`id` as `id`, `a`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`
from `accounts` as `a`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
where `a`.`id` = ?;

select `account_id` as `id`, count(*) as `things`
from `campaigns`
where `account_id` in (?)
group by `account_id`;

-- directory.findCampaign

select `c`.`id` as `id`, `c`.`name` as `name`, `p`.`id` as `partner_id`, `p`.`name` as `partner_name`, `a`.`id` as `account_id`,
  `a`.`name` as `account_name`
from `campaigns` as `c`
inner join `accounts` as `a` on `a`.`id` = `c`.`account_id`
inner join `partners` as `p` on `p`.`id` = `a`.`partner_id`
where `c`.`id` = ?;

-- imports.find

select `t`.*
from `partners` as `t`
where `t`.`external_id` in (?);

select `t`.*
from `accounts` as `t`
where `t`.`external_id` in (?);

select `t`.*, `a`.`partner_id`
from `campaigns` as `t`
inner join `accounts` as `a` on `a`.`id` = `t`.`account_id`
where `t`.`external_id` in (?);

select `t`.*
from `users` as `t`
where `t`.`external_id` in (?);

-- imports.findEmails

select `email`, `external_id`
from `users`
where `email` in (?);

-- imports.write

insert into `partners` (`created_at`, `external_id`, `id`, `name`)
values (?, ?, ?, ?);

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

update `partners`
set `name` = ?
where `id` = ?;

insert into `accounts` (`created_at`, `external_id`, `id`, `name`, `partner_id`)
values (?, ?, ?, ?, ?);

update `accounts`
set `name` = ?, `partner_id` = ?
where `id` = ?;

insert into `campaigns` (`account_id`, `created_at`, `external_id`, `id`, `name`)
values (?, ?, ?, ?, ?);

update `campaigns`
set `name` = ?, `account_id` = ?
where `id` = ?;

insert into `users` (`account_id`, `created_at`, `email`, `external_id`, `id`, `name`, `partner_id`,
  `password_expires_at`, `password_hash`, `user_type`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

select `partner_id`
from `users`
where `id` = ?
  and `deleted_at` is null
limit ?;

update `users`
set `name` = ?, `partner_id` = ?, `account_id` = ?, `email` = ?, `user_type` = ?
where `id` = ?;
