-- tenancies.findPartner

select "id", "name"
from "partners"
where "id" = $1;

-- tenancies.findAccount

select "id", "name", "partner_id"
from "accounts"
where "id" = $1;

-- tenancies.findTenancy

select "t"."id" as "id", "t"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name"
from "accounts" as "t"
inner join "partners" as "p" on "p"."id" = "t"."partner_id"
where "t"."id" = $1;

select "t"."id" as "id", "t"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name"
from "partners" as "t"
inner join "partners" as "p" on "p"."id" = "t"."id"
where "t"."id" = $1;

-- tenancies.createPartner

insert into "partners" ("created_at", "id", "name")
values ($1, $2, $3);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- tenancies.createAccount

insert into "accounts" ("created_at", "id", "name", "partner_id")
values ($1, $2, $3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- tenancies.createCampaign

insert into "campaigns" ("account_id", "created_at", "id", "name")
values ($1, $2, $3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- tenancies.allPartners

select "id", "name", "external_id"
from "partners"
order by "name" asc, "id" asc;

-- tenancies.allAccounts

select "a"."id", "a"."name", "a"."external_id", "a"."partner_id", "p"."name" as "partner_name"
from "accounts" as "a"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
order by "p"."name" asc, "a"."name" asc, "a"."id" asc;

-- tenancies.allCampaigns

select "c"."id", "c"."name", "c"."external_id", "c"."account_id", "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
order by "a"."name" asc, "c"."name" asc, "c"."id" asc;

-- tenancies.listAccounts

select "a"."id", "a"."name"
from "accounts" as "a"
where "a"."id" = $1
order by "a"."name" asc, "a"."id" asc
limit $2;

select "a"."id", "a"."name"
from "accounts" as "a"
where "a"."partner_id" = $1
order by "a"."name" asc, "a"."id" asc
limit $2;

select "a"."id", "a"."name"
from "accounts" as "a"
where 1 = 0
order by "a"."name" asc, "a"."id" asc
limit $1;

select "a"."id", "a"."name"
from "accounts" as "a"
where "a"."partner_id" = $1
  and (a.name ~ $2 OR a.id = $3)
  and (a.name, a.id) > (
    select "a"."name", "a"."id"
    from "accounts" as "a"
    where "a"."partner_id" = $4
      and "a"."id" = $5
  )
order by "a"."name" asc, "a"."id" asc
limit $6;

-- tenancies.listCampaigns

select "c"."id", "c"."name", "c"."account_id", "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
where 1 = 0
order by "a"."name" asc, "c"."name" asc, "c"."id" asc
limit $1;

select "c"."id", "c"."name", "c"."account_id", "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
where "a"."partner_id" = $1
  and (c.name ~ $2 OR a.name ~ $3 OR c.id = $4)
  and (a.name,c.name,c.id) > (
    select "a"."name", "c"."name", "c"."id"
    from "campaigns" as "c"
    inner join "accounts" as "a" on "a"."id" = "c"."account_id"
    where "a"."partner_id" = $5
      and "c"."id" = $6
  )
order by "a"."name" asc, "c"."name" asc, "c"."id" asc
limit $7;

-- tenancies.search

select "t"."id", "t"."name"
from "partners" as "t"
order by "t"."name" asc, "t"."id" asc
limit $1;

select "t"."id", "t"."name", "t"."partner_id", "p"."name" as "partner_name"
from "accounts" as "t"
inner join "partners" as "p" on "p"."id" = "t"."partner_id"
order by "t"."name" asc, "t"."id" asc
limit $1;

select "t"."id", "t"."name"
from "partners" as "t"
where t.name ~ $1
order by CASE WHEN t.name ~ $2 THEN 0 WHEN t.name ~ $3 THEN 1 WHEN t.name ~ $4 THEN 2 ELSE 3 END, t.name, t.id
limit $5;

select "t"."id", "t"."name", "t"."partner_id", "p"."name" as "partner_name"
from "accounts" as "t"
inner join "partners" as "p" on "p"."id" = "t"."partner_id"
where t.name ~ $1
order by CASE WHEN t.name ~ $2 THEN 0 WHEN t.name ~ $3 THEN 1 WHEN t.name ~ $4 THEN 2 ELSE 3 END, t.name, t.id
limit $5;

-- directory.setUp

LOCK TABLE partners IN SHARE ROW EXCLUSIVE MODE;

select "id"
from "partners"
limit $1;

insert into "partners" ("created_at", "id", "name")
values ($1, $2, $3);

insert into "accounts" ("created_at", "id", "name", "partner_id")
values ($1, $2, $3, $4);

insert into "campaigns" ("account_id", "created_at", "id", "name")
values ($1, $2, $3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- directory.rename

update "partners"
set "name" = $1
where "id" = $2;

update "accounts"
set "name" = $1
where "id" = $2;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

update "campaigns"
set "name" = $1
where "id" = $2;

-- directory.partners

select "p"."id" as "id", "p"."name" as "name"
from "partners" as "p"
order by "p"."name" asc, "p"."id" asc
limit $1;

select "partner_id" as "id", count(*) as "things"
from "accounts"
where "partner_id" in ($1, $2, $3, $4)
group by "partner_id";

select "p"."id" as "id", "p"."name" as "name"
from "partners" as "p"
where "p"."id" = $1
  and (p.name ~ $2 OR p.id = $3)
  and (p.name,p.id) > (
    select "p"."name", "p"."id"
    from "partners" as "p"
    where "p"."id" = $4
      and "p"."id" = $5
  )
order by "p"."name" asc, "p"."id" asc
limit $6;

select "p"."id" as "id", "p"."name" as "name"
from "partners" as "p"
where 1 = 0
order by "p"."name" asc, "p"."id" asc
limit $1;

-- directory.accounts

select "a"."id" as "id", "a"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name"
from "accounts" as "a"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
order by "p"."name" asc, "a"."name" asc, "a"."id" asc
limit $1;

select "account_id" as "id", count(*) as "things"
from "campaigns"
where "account_id" in ($1, $2)
group by "account_id";

select "a"."id" as "id", "a"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name"
from "accounts" as "a"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
where "p"."id" = $1
  and "p"."id" = $2
  and (a.name ~ $3 OR a.id = $4)
  and (p.name,a.name,a.id) > (
    select "p"."name", "a"."name", "a"."id"
    from "accounts" as "a"
    inner join "partners" as "p" on "p"."id" = "a"."partner_id"
    where "p"."id" = $5
      and "p"."id" = $6
      and "a"."id" = $7
  )
order by "p"."name" asc, "a"."name" asc, "a"."id" asc
limit $8;

-- directory.campaigns

select "c"."id" as "id", "c"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name", "a"."id" as "account_id",
  "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
order by "p"."name" asc, "a"."name" asc, "c"."name" asc, "c"."id" asc
limit $1;

select "c"."id" as "id", "c"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name", "a"."id" as "account_id",
  "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
where "p"."id" = $1
  and "a"."id" = $2
  and (c.name ~ $3 OR c.id = $4)
  and (p.name,a.name,c.name,c.id) > (
    select "p"."name", "a"."name", "c"."name", "c"."id"
    from "campaigns" as "c"
    inner join "accounts" as "a" on "a"."id" = "c"."account_id"
    inner join "partners" as "p" on "p"."id" = "a"."partner_id"
    where "p"."id" = $5
      and "a"."id" = $6
      and "c"."id" = $7
  )
order by "p"."name" asc, "a"."name" asc, "c"."name" asc, "c"."id" asc
limit $8;

-- directory.findPartner

select "p"."id" as "id", "p"."name" as "name"
from "partners" as "p"
where "p"."id" = $1;

select "partner_id" as "id", count(*) as "things"
from "accounts"
where "partner_id" in ($1)
group by "partner_id";

-- directory.findAccount

select "a"."id" as "id", "a"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name"
from "accounts" as "a"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
where "a"."id" = $1;

select "account_id" as "id", count(*) as "things"
from "campaigns"
where "account_id" in ($1)
group by "account_id";

-- directory.findCampaign

select "c"."id" as "id", "c"."name" as "name", "p"."id" as "partner_id", "p"."name" as "partner_name", "a"."id" as "account_id",
  "a"."name" as "account_name"
from "campaigns" as "c"
inner join "accounts" as "a" on "a"."id" = "c"."account_id"
inner join "partners" as "p" on "p"."id" = "a"."partner_id"
where "c"."id" = $1;

-- imports.find

select "t".*
from "partners" as "t"
where "t"."external_id" in ($1);

select "t".*
from "accounts" as "t"
where "t"."external_id" in ($1);

select "t".*, "a"."partner_id"
from "campaigns" as "t"
inner join "accounts" as "a" on "a"."id" = "t"."account_id"
where "t"."external_id" in ($1);

select "t".*
from "users" as "t"
where "t"."external_id" in ($1);

-- imports.findEmails

select "email", "external_id"
from "users"
where "email" in ($1);

-- imports.write

insert into "partners" ("created_at", "external_id", "id", "name")
values ($1, $2, $3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

update "partners"
set "name" = $1
where "id" = $2;

insert into "accounts" ("created_at", "external_id", "id", "name", "partner_id")
values ($1, $2, $3, $4, $5);

update "accounts"
set "name" = $1, "partner_id" = $2
where "id" = $3;

insert into "campaigns" ("account_id", "created_at", "external_id", "id", "name")
values ($1, $2, $3, $4, $5);

update "campaigns"
set "name" = $1, "account_id" = $2
where "id" = $3;

insert into "users" ("account_id", "created_at", "email", "external_id", "id", "name", "partner_id",
  "password_expires_at", "password_hash", "user_type")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

select "partner_id"
from "users"
where "id" = $1
  and "deleted_at" is null
limit $2
for no key update;

update "users"
set "name" = $1, "partner_id" = $2, "account_id" = $3, "email" = $4, "user_type" = $5
where "id" = $6;
