-- users.count

select count(*) as "users"
from "users"
where "deleted_at" is null
limit $1;

-- users.list

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "u"."account_id" = $2
order by "u"."created_at" asc, "u"."id" asc
limit $3;

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "u"."partner_id" = $2
order by "u"."created_at" asc, "u"."id" asc
limit $3;

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "u"."user_type" = $2
order by "u"."created_at" asc, "u"."id" asc
limit $3;

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
order by "u"."created_at" asc, "u"."id" asc
limit $2;

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and 1 = 0
order by "u"."created_at" asc, "u"."id" asc
limit $2;

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and (u.created_at, u.id) > ($2, $3)
  and COALESCE(u.last_sign_in_at, u.created_at) < $4
  and (u.name ~ $5 OR u.email ~ $6)
order by "u"."created_at" asc, "u"."id" asc
limit $7;

-- users.find

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."created_at", "u"."last_sign_in_at", "u"."disabled_at", "l"."issuer", "l"."subject",
  "l"."linked_at", "sf"."confirmed_at", (
    select sum("keys")
    from "api_key_tallies"
    where "scope" = $1
      and "id" = "u"."id"
  ) as "api_keys"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "oidc_links" as "l" on "l"."user_id" = "u"."id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "u"."id" = $2;

-- users.deletionImpact

select "id", "name", "created_at", "last_used_at", "expires_at"
from "api_keys"
where "creator_id" = $1
order by "created_at" desc, "id" desc
limit $2;

SELECT api_key_id, count(*) AS calls
FROM calls
WHERE due_at IS NOT NULL
  AND api_key_id IN ($1)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
GROUP BY api_key_id;

select count(*) as "sessions"
from "sessions"
where "user_id" = $1
  and "half_open_until" is null
limit $2;

select "id", "name", "created_at", "last_used_at", "expires_at"
from "api_keys"
where "creator_id" = $1
  and (created_at, id) < ($2, $3)
order by "created_at" desc, "id" desc
limit $4;

-- users.findByEmail

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."password_hash", "u"."password_expires_at", "u"."disabled_at", "sf"."confirmed_at"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "u"."email" = $1;

-- users.create

insert into "users" ("account_id", "created_at", "email", "id", "name", "partner_id", "password_expires_at",
  "password_hash", "user_type")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- users.setPassword

select "id"
from "users"
where "id" = $1
  and "deleted_at" is null
limit $2
for update;

update "users"
set "password_hash" = $1, "password_expires_at" = $2
where "id" = $3;

delete from "sessions"
where "user_id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

select "id"
from "sessions"
where "id" = $1
limit $2;

delete from "sessions"
where "user_id" = $1
  and not "id" = $2;

select "id"
from "users"
where "id" = $1
  and "deleted_at" is null
  and "password_hash" = $2
limit $3
for update;

-- users.change

select "partner_id"
from "users"
where "id" = $1
  and "deleted_at" is null
limit $2
for no key update;

update "users"
set "name" = $1, "user_type" = $2, "account_id" = $3, "partner_id" = $4
where "id" = $5;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

select "id"
from "api_keys"
where "creator_id" = $1
order by "created_at" desc, "id" desc
limit $2;

update "api_keys"
set "creator_partner_id" = "partner_id"
where 1 = $1;

update "users"
set "moving_keys" = $1
where "id" = $2;

-- users.setDisabled

update "users"
set "disabled_at" = $1
where "id" = $2
  and "deleted_at" is null
  and "disabled_at" is null;

delete from "sessions"
where "user_id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

update "users"
set "disabled_at" = $1
where "id" = $2
  and "deleted_at" is null
  and "disabled_at" is not null;

-- users.delete

select "id"
from "users"
where "id" = $1
  and "deleted_at" is null
limit $2
for update;

delete from "sessions"
where "user_id" = $1;

delete from "second_factors"
where "user_id" = $1
  and "confirmed_at" is not null;

delete from "second_factors"
where "user_id" = $1;

select sum("keys") as "keys"
from "api_key_tallies"
where "scope" = $1
  and "id" = $2
limit $3;

delete from "sign_in_codes"
where "user_id" = $1;

delete from "oidc_links"
where "user_id" = $1;

update "users"
set "deleted_at" = $1, "disabled_at" = $2, "cancelling_since" = $3, "moving_keys" = $4, "email" = $5,
  "external_id" = $6
where "id" = $7;

select "id"
from "api_keys"
where "creator_id" = $1
order by "created_at" desc, "id" desc
limit $2;

select "id"
from "api_keys"
where "id" in ($1, …)
order by "id" asc
for update;

insert into "retired_api_keys" ("id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id",
  "creator_name", "retired_at", "cancelling_since")
select "id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id", (
  select "name"
  from "users"
  where "users"."id" = "api_keys"."creator_id"
) as "creator_name", CAST($1 AS bigint), CAST($2 AS bigint)
from "api_keys"
where "id" in ($3, …);

delete from "api_keys"
where "id" in ($1, …);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > ($1, $2, $3, $4, $5)
  AND (EXISTS (
    SELECT 1
    FROM api_keys k
    WHERE k.id = calls.api_key_id
      AND k.creator_id = $6
  ) OR EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.creator_id = $7
  ))
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT $8;

SELECT virtualtransaction AS id
FROM pg_locks
WHERE relation = 'calls'::regclass
  AND mode = 'RowExclusiveLock'
  AND granted
  AND database = (
    SELECT oid
    FROM pg_database
    WHERE datname = current_database()
  );

select "id"
from "api_keys"
where 1 = $1
order by "id" asc
for update;

insert into "retired_api_keys" ("id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id",
  "creator_name", "retired_at", "cancelling_since")
select "id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id", (
  select "name"
  from "users"
  where "users"."id" = "api_keys"."creator_id"
) as "creator_name", CAST($1 AS bigint), CAST($2 AS bigint)
from "api_keys"
where 1 = $3;

delete from "api_keys"
where 1 = $1;

delete from "users"
where "id" = $1;

-- users.finishDeletions

select "id"
from "users"
where "deleted_at" is not null;

select "deleted_at", "cancelling_since"
from "users"
where "id" = $1
limit $2
for update;

select "id"
from "api_keys"
where "creator_id" = $1
order by "created_at" desc, "id" desc
limit $2;

select "id"
from "api_keys"
where 1 = $1
order by "id" asc
for update;

insert into "retired_api_keys" ("id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id",
  "creator_name", "retired_at", "cancelling_since")
select "id", "name", "creator_id", "creator_partner_id", "account_id", "partner_id", (
  select "name"
  from "users"
  where "users"."id" = "api_keys"."creator_id"
) as "creator_name", CAST($1 AS bigint), CAST($2 AS bigint)
from "api_keys"
where 1 = $3;

delete from "api_keys"
where 1 = $1;

delete from "users"
where "id" = $1;

-- users.finishMoves

select "id", "partner_id", "moving_keys"
from "users"
where "moving_keys" is not null;

select "id", "created_at", "partner_id", "creator_partner_id"
from "api_keys"
where "creator_id" = $1
order by "created_at" desc, "id" desc
limit $2;

select "id"
from "users"
where "id" = $1
  and "moving_keys" = $2
  and "partner_id" = $3
limit $4
for no key update;

update "api_keys"
set "creator_partner_id" = $1
where "id" in ($2, …);

select "id", "created_at", "partner_id", "creator_partner_id"
from "api_keys"
where "creator_id" = $1
  and (created_at, id) < ($2, $3)
order by "created_at" desc, "id" desc
limit $4;

update "users"
set "moving_keys" = $1
where "id" = $2;

-- sessions.start

select "id"
from "users"
where "id" = $1
  and "password_hash" = $2
  and "disabled_at" is null
limit $3
for update;

insert into "sessions" ("half_open_until", "id", "last_seen_at", "started_at", "user_id")
values ($1, $2, $3, $4, $5);

update "users"
set "last_sign_in_at" = $1
where "id" = $2;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.finish

select "id"
from "users"
where "id" = $1
  and "disabled_at" is null
limit $2
for update;

select "id"
from "sessions"
where "id" = $1
  and "user_id" = $2
  and "half_open_until" >= $3
limit $4;

update "second_factors"
set "last_step" = $1
where "user_id" = $2
  and "confirmed_at" is not null
  and (last_step IS NULL OR last_step < $3 OR last_step > $4);

delete from "sessions"
where "id" = $1;

insert into "sessions" ("half_open_until", "id", "last_seen_at", "started_at", "user_id")
values ($1, $2, $3, $4, $5);

update "users"
set "last_sign_in_at" = $1
where "id" = $2;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.find

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."password_expires_at", "s"."tenancy_kind", "s"."started_at", "s"."last_seen_at",
  "s"."issuer", "s"."half_open_until", "sf"."confirmed_at", "ta"."id" as "tenancy_account_id", "ta"."name" as "tenancy_account_name",
  "ta"."partner_id" as "tenancy_account_partner_id", "tap"."name" as "tenancy_account_partner_name", "tp"."id" as "tenancy_partner_id",
  "tp"."name" as "tenancy_partner_name"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
inner join "sessions" as "s" on "s"."user_id" = "u"."id"
left join "accounts" as "ta" on "ta"."id" = "s"."tenancy_id"
  and "s"."tenancy_kind" = $1
left join "partners" as "tap" on "tap"."id" = "ta"."partner_id"
left join "partners" as "tp" on "tp"."id" = "s"."tenancy_id"
  and "s"."tenancy_kind" = $2
left join "second_factors" as "sf" on "sf"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "s"."id" = $3;

-- sessions.touch

update "sessions"
set "last_seen_at" = $1
where "id" = $2;

-- sessions.selectTenancy

update "sessions"
set "tenancy_kind" = $1, "tenancy_id" = $2
where "id" = $3;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.end

delete from "sessions"
where "id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.endAll

delete from "sessions"
where "user_id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.startLinked

select "id"
from "users"
where "id" = $1
  and "disabled_at" is null
limit $2
for update;

select "user_id"
from "oidc_links"
where "user_id" = $1
  and "issuer" = $2
limit $3;

insert into "sessions" ("id", "issuer", "last_seen_at", "started_at", "user_id")
values ($1, $2, $3, $4, $5);

update "users"
set "last_sign_in_at" = $1
where "id" = $2;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- sessions.sweep

delete from "sessions"
where "started_at" not between $1 and $2
  or "last_seen_at" not between $3 and $4
  or "half_open_until" < $5
  or ("issuer" is not null);

delete from "sessions"
where "started_at" not between $1 and $2
  or "last_seen_at" not between $3 and $4
  or "half_open_until" < $5
  or ("issuer" is not null and not "issuer" = $6)
  or "issuer" is null;

-- links.find

select "u"."id", "u"."email", "u"."name", "u"."user_type", "u"."account_id", "u"."partner_id", "ua"."name" as "account_name",
  "up"."name" as "partner_name", "u"."disabled_at"
from "users" as "u"
left join "accounts" as "ua" on "ua"."id" = "u"."account_id"
left join "partners" as "up" on "up"."id" = "u"."partner_id"
inner join "oidc_links" as "l" on "l"."user_id" = "u"."id"
where "u"."deleted_at" is null
  and "l"."issuer" = $1
  and "l"."subject" = $2;

-- links.create

select "id"
from "users"
where "id" = $1
  and "deleted_at" is null
  and "disabled_at" is null
limit $2
for update;

delete from "oidc_links"
where "user_id" = $1
  and not "issuer" = $2;

select "user_id"
from "oidc_links"
where "user_id" = $1
limit $2;

insert into "oidc_links" ("issuer", "linked_at", "subject", "user_id")
values ($1, $2, $3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- links.delete

delete from "sign_in_codes"
where "user_id" = $1;

delete from "oidc_links"
where "user_id" = $1;

delete from "sessions"
where "user_id" = $1
  and "issuer" is not null;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- links.list

select "l".*, "u"."email"
from "oidc_links" as "l"
inner join "users" as "u" on "u"."id" = "l"."user_id"
where "u"."deleted_at" is null
order by "u"."email" asc;

-- links.createCode

insert into "sign_in_codes" ("challenge", "digest", "expires_at", "issuer", "user_id")
values ($1, $2, $3, $4, $5);

-- links.takeCode

select "digest"
from "sign_in_codes"
where "digest" = $1
limit $2;

select *
from "sign_in_codes"
where "digest" = $1
limit $2
for update;

delete from "sign_in_codes"
where "digest" = $1;

-- links.sweepCodes

delete from "sign_in_codes"
where "expires_at" < $1;

-- secondFactors.find

select "secret", "confirmed_at"
from "second_factors"
where "user_id" = $1
limit $2;

-- secondFactors.enroll

update "second_factors"
set "secret" = $1
where "user_id" = $2
  and "confirmed_at" is null;

insert into "second_factors" ("secret", "user_id")
values ($1, $2)
on conflict ("user_id") do nothing
returning "user_id";

-- secondFactors.confirm

update "second_factors"
set "confirmed_at" = $1, "last_step" = $2
where "user_id" = $3
  and "secret" = $4
  and "confirmed_at" is null;

insert into "recovery_codes" ("digest", "user_id")
values ($1, $2), ($3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- secondFactors.use

update "second_factors"
set "last_step" = $1
where "user_id" = $2
  and "confirmed_at" is not null
  and (last_step IS NULL OR last_step < $3 OR last_step > $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

select "user_id"
from "second_factors"
where "user_id" = $1
limit $2
for update;

delete from "recovery_codes"
where "user_id" = $1
  and "digest" = $2;

-- secondFactors.remove

update "second_factors"
set "last_step" = $1
where "user_id" = $2
  and "confirmed_at" is not null
  and (last_step IS NULL OR last_step < $3 OR last_step > $4);

delete from "second_factors"
where "user_id" = $1
  and "confirmed_at" is not null;

delete from "second_factors"
where "user_id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- secondFactors.renew

select "user_id"
from "second_factors"
where "user_id" = $1
limit $2
for update;

delete from "recovery_codes"
where "user_id" = $1
  and "digest" = $2;

delete from "recovery_codes"
where "user_id" = $1;

insert into "recovery_codes" ("digest", "user_id")
values ($1, $2), ($3, $4);

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- secondFactors.countRecoveryCodes

select count(*) as "codes"
from "recovery_codes"
where "user_id" = $1
limit $2;

-- secondFactors.reset

delete from "second_factors"
where "user_id" = $1
  and "confirmed_at" is not null;

delete from "second_factors"
where "user_id" = $1;

delete from "sessions"
where "user_id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- secondFactors.listSealedOtherwise

select "user_id", "secret"
from "second_factors"
where substr(secret, 1, $1) <> $2
  and "user_id" > $3
order by "user_id" asc
limit $4;

-- secondFactors.reseal

update "second_factors"
set "secret" = $1
where "user_id" = $2
  and "secret" = $3;

-- throttle.blockedUntil

SELECT asked.n, max(kept.expire) AS until
FROM sign_in_attempts AS kept
JOIN (
  SELECT *
  FROM (
    SELECT (e.value->>0)::bigint AS n, (e.value->>1)::text AS key, (e.value->>2)::bigint AS max, (e.value->>3)::bigint AS now,
      (e.value->>4)::bigint AS until
    FROM jsonb_array_elements($1::jsonb) AS e(value)
  ) AS r
) AS asked ON asked.key = kept.key
WHERE kept.points >= asked.max
  AND kept.expire > asked.now
  AND kept.expire <= asked.until
GROUP BY asked.n;

-- throttle.take

WITH asked AS (
  SELECT *
  FROM (
    SELECT (e.value->>0)::text AS key, (e.value->>1)::bigint AS max, (e.value->>2)::bigint AS now, (e.value->>3)::bigint AS until
    FROM jsonb_array_elements($1::jsonb) AS e(value)
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
    AND kept.expire <= asked.until
)
ON CONFLICT (key)
DO UPDATE SET points = CASE
  WHEN kept.expire > (
    SELECT max(now)
    FROM asked
  ) AND kept.expire <= excluded.expire THEN kept.points + 1
  ELSE 1
END, expire = CASE
  WHEN kept.expire > (
    SELECT max(now)
    FROM asked
  ) AND kept.expire <= excluded.expire THEN kept.expire
  ELSE excluded.expire
END
RETURNING key, points;

-- throttle.giveBack

update "sign_in_attempts"
set "points" = "points" - $1
where "key" = $2
  and "points" > $3;

-- throttle.reset

delete from "sign_in_attempts"
where "key" = $1;

-- throttle.sweep

delete from "sign_in_attempts"
where "key" in (
  select "key"
  from "sign_in_attempts"
  where "expire" <= $1
    or "expire" > $2
  for update skip locked
);

delete from "sign_in_attempts"
where "key" in (
  select "key"
  from "sign_in_attempts"
  order by "points" desc, "expire" desc offset $1
  for update skip locked
);
