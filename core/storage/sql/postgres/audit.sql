-- activity.record

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- activity.list

select *
from "audit_events"
where "actor_id" = $1
order by "id" desc
limit $2;

select *
from "audit_events"
where "account_id" = $1
order by "id" desc
limit $2;

select *
from "audit_events"
where "partner_id" = $1
order by "id" desc
limit $2;

select *
from "audit_events"
where "partner_id" is null
order by "id" desc
limit $1;

select *
from "audit_events"
where 1 = 0
order by "id" desc
limit $1;

select *
from "audit_events"
where "partner_id" is null
  and "at" >= $1
  and "at" < $2
  and "id" >= $3
  and "id" < $4
  and "actor_id" = $5
  and "action" = $6
  and "subject_id" = $7
  and "id" < $8
order by "id" desc
limit $9;

select *
from "audit_events"
where "partner_id" is null
  and "at" >= $1
  and "at" < $2
  and "id" >= $3
  and "id" < $4
  and "actor_id" is null
  and "action" = $5
  and "subject_id" = $6
order by "id" desc
limit $7;

-- activity.count

select count(*) as "events"
from (
  select "id"
  from "audit_events"
  where "partner_id" is null
  limit $1
) as "matching";

-- activity.facets

select "id"
from "audit_events"
where "partner_id" is null
  and "actor_id" is null
limit $1;

select "actor_id"
from "audit_events"
where "partner_id" is null
  and "actor_id" > $1
order by "actor_id" asc
limit $2;

select "actor_name"
from "audit_events"
where "partner_id" is null
  and "actor_id" = $1
order by "id" desc
limit $2;

select "id"
from "audit_events"
where "partner_id" is null
  and "action" is null
limit $1;

select "action"
from "audit_events"
where "partner_id" is null
  and "action" > $1
order by "action" asc
limit $2;

-- activity.listOfApiKey

select *
from "audit_events"
where "subject_id" = $1
  and subject_kind = 'api-key'
  and "partner_id" is null
order by "id" desc
limit $2;

select *
from "audit_events"
where "subject_id" = $1
  and subject_kind = 'api-key'
  and ("actor_id" = $2 or "action" = $3)
order by "id" desc
limit $4;

-- auditChain.extend

select "id"
from "audit_events"
where "seq" is null
limit $1;

select "seq", "hash"
from "audit_chain"
limit $1
for update;

select *
from "audit_events"
where "seq" is null
order by "id" asc
limit $1;

update "audit_events"
set "seq" = $1, "hash" = $2
where "id" = $3;

update "audit_chain"
set "seq" = $1, "hash" = $2;

-- auditChain.state

select "seq", "hash", "pruned_seq", "pruned_hash"
from "audit_chain"
limit $1;

select count(*) as "events"
from "audit_events"
where "seq" is null
limit $1;

-- auditChain.read

select *
from "audit_events"
where "seq" > $1
  and "seq" <= $2
order by "seq" asc
limit $3;

-- auditChain.oldestAt

select "at"
from "audit_events"
where "seq" is not null
order by "seq" asc
limit $1;

-- auditChain.prune

select "seq"
from "audit_chain"
limit $1
for update;

select *
from "audit_events"
where "seq" <= $1
order by "seq" asc
limit $2;

update "audit_chain"
set "pruned_seq" = $1, "pruned_hash" = $2;

delete from "audit_events"
where "seq" <= $1;
