-- activity.record

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- activity.list

select *
from `audit_events`
where `actor_id` = ?
order by `id` desc
limit ?;

select *
from `audit_events`
where `account_id` = ?
order by `id` desc
limit ?;

select *
from `audit_events`
where `partner_id` = ?
order by `id` desc
limit ?;

select *
from `audit_events`
where `partner_id` is null
order by `id` desc
limit ?;

select *
from `audit_events`
where 1 = 0
order by `id` desc
limit ?;

select *
from `audit_events`
where `partner_id` is null
  and `at` >= ?
  and `at` < ?
  and `id` >= ?
  and `id` < ?
  and `actor_id` = ?
  and `action` = ?
  and `subject_id` = ?
  and `id` < ?
order by `id` desc
limit ?;

select *
from `audit_events`
where `partner_id` is null
  and `at` >= ?
  and `at` < ?
  and `id` >= ?
  and `id` < ?
  and `actor_id` is null
  and `action` = ?
  and `subject_id` = ?
order by `id` desc
limit ?;

-- activity.count

select count(*) as `events`
from (
  select `id`
  from `audit_events`
  where `partner_id` is null
  limit ?
) as `matching`;

-- activity.facets

select `id`
from `audit_events`
where `partner_id` is null
  and `actor_id` is null
limit ?;

select `actor_id`
from `audit_events`
where `partner_id` is null
  and `actor_id` > ?
order by `actor_id` asc
limit ?;

select `actor_name`
from `audit_events`
where `partner_id` is null
  and `actor_id` = ?
order by `id` desc
limit ?;

select `id`
from `audit_events`
where `partner_id` is null
  and `action` is null
limit ?;

select `action`
from `audit_events`
where `partner_id` is null
  and `action` > ?
order by `action` asc
limit ?;

-- activity.listOfApiKey

select *
from `audit_events`
where `subject_id` = ?
  and subject_kind = 'api-key'
  and `partner_id` is null
order by `id` desc
limit ?;

select *
from `audit_events`
where `subject_id` = ?
  and subject_kind = 'api-key'
  and (`actor_id` = ? or `action` = ?)
order by `id` desc
limit ?;

-- auditChain.extend

select `id`
from `audit_events`
where `seq` is null
limit ?;

select `seq`, `hash`
from `audit_chain`
limit ?;

select *
from `audit_events`
where `seq` is null
order by `id` asc
limit ?;

update `audit_events`
set `seq` = ?, `hash` = ?
where `id` = ?;

update `audit_chain`
set `seq` = ?, `hash` = ?;

-- auditChain.state

select `seq`, `hash`, `pruned_seq`, `pruned_hash`
from `audit_chain`
limit ?;

select count(*) as `events`
from `audit_events`
where `seq` is null
limit ?;

-- auditChain.read

select *
from `audit_events`
where `seq` > ?
  and `seq` <= ?
order by `seq` asc
limit ?;

-- auditChain.oldestAt

select `at`
from `audit_events`
where `seq` is not null
order by `seq` asc
limit ?;

-- auditChain.prune

select `seq`
from `audit_chain`
limit ?;

select *
from `audit_events`
where `seq` <= ?
order by `seq` asc
limit ?;

update `audit_chain`
set `pruned_seq` = ?, `pruned_hash` = ?;

delete from `audit_events`
where `seq` <= ?;
