-- apiKeys.create

select "partner_id"
from "users"
where "id" = $1
  and "disabled_at" is null
limit $2
for no key update;

SELECT (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = $1
      AND expires_at IS NULL
    LIMIT $2
  ) AS endless
) + (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = $3
      AND expires_at >= $4
    LIMIT $5
  ) AS ending
) AS active;

insert into "api_keys" ("account_id", "created_at", "creator_id", "creator_partner_id", "digest", "expires_at",
  "expiry_time_zone", "id", "last_used_at", "name", "partner_id", "time_zone")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_id', creator_id, 1 * count(*)
FROM api_keys
WHERE id IN ($1)
  AND creator_id IS NOT NULL
GROUP BY creator_id
UNION ALL
SELECT 'creator_partner_id', creator_partner_id, 1 * count(*)
FROM api_keys
WHERE id IN ($2)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
UNION ALL
SELECT 'account_id', account_id, 1 * count(*)
FROM api_keys
WHERE id IN ($3)
  AND account_id IS NOT NULL
GROUP BY account_id
UNION ALL
SELECT 'partner_id', partner_id, 1 * count(*)
FROM api_keys
WHERE id IN ($4)
  AND partner_id IS NOT NULL
GROUP BY partner_id;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- apiKeys.limit

select "calls_per_day"
from "api_keys"
where "id" = $1
  and "limits_version" is null
limit $2;

SELECT count(*) AS placed
FROM api_keys k
CROSS JOIN accounts a
CROSS JOIN campaigns c
CROSS JOIN calls
WHERE k.id = $1
  AND a.partner_id IN (k.partner_id, k.creator_partner_id)
  AND c.account_id = a.id
  AND calls.campaign_id = c.id
  AND calls.contact_id >= $2
  AND calls.contact_id < $3
  AND calls.api_key_id = k.id
  AND calls.placed_at >= $4
  AND calls.placed_at < $5;

update "api_keys"
set "limits_version" = $1, "addresses" = $2, "calls_per_day" = $3
where "id" = $4
  and "limits_version" is null;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

insert into "api_key_days" ("api_key_id", "day", "placed")
values ($1, $2, $3)
on conflict ("api_key_id", "day")
do update set "api_key_id" = excluded."api_key_id";

update "api_key_days"
set "placed" = $1
where "api_key_id" = $2
  and "day" = $3;

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

-- apiKeys.addresses

select *
from "api_key_addresses"
where "api_key_id" = $1
  and "used_at" >= $2
order by "used_at" desc
limit $3;

-- apiKeys.recount

SELECT count(*) AS placed
FROM api_keys k
CROSS JOIN accounts a
CROSS JOIN campaigns c
CROSS JOIN calls
WHERE k.id = $1
  AND a.partner_id IN (k.partner_id, k.creator_partner_id)
  AND c.account_id = a.id
  AND calls.campaign_id = c.id
  AND calls.contact_id >= $2
  AND calls.contact_id < $3
  AND calls.api_key_id = k.id
  AND calls.placed_at >= $4
  AND calls.placed_at < $5;

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

insert into "api_key_days" ("api_key_id", "day", "placed")
values ($1, $2, $3)
on conflict ("api_key_id", "day")
do update set "api_key_id" = excluded."api_key_id";

update "api_key_days"
set "placed" = $1
where "api_key_id" = $2
  and "day" = $3;

-- apiKeys.placedOn

select "placed"
from "api_key_days"
where "api_key_id" = $1
  and "day" = $2
limit $3;

-- apiKeys.countActive

SELECT (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = $1
      AND expires_at IS NULL
    LIMIT $2
  ) AS endless
) + (
  SELECT count(*)
  FROM (
    SELECT 1
    FROM api_keys
    WHERE creator_id = $3
      AND expires_at >= $4
    LIMIT $5
  ) AS ending
) AS active;

-- apiKeys.list

select "id"
from "users"
where "deleted_at" is not null;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where "k"."creator_id" = $1
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
    )
  order by "k"."created_at" desc, "k"."id" desc
  limit $2
)
order by "k"."created_at" desc, "k"."id" desc;

select sum("keys") as "total"
from "api_key_tallies"
where "scope" = $1
  and "id" = $2
limit $3;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where ("k"."account_id" = $1 or "k"."creator_id" = $2)
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
    )
  order by "k"."created_at" desc, "k"."id" desc
  limit $3
)
order by "k"."created_at" desc, "k"."id" desc;

select count(*) as "total"
from "api_keys"
where "creator_id" = $1
  and ("account_id" is null or not "account_id" = $2)
limit $3;

select "id"
from "users"
where "deleted_at" is not null
union all
select "id"
from "users"
where "moving_keys" is not null
  and not "partner_id" = $1;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where "k"."creator_partner_id" = $1
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
      union all
      select "id"
      from "users"
      where "moving_keys" is not null
        and not "partner_id" = $2
    )
  order by "k"."created_at" desc, "k"."id" desc
  limit $3
)
order by "k"."created_at" desc, "k"."id" desc;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where "k"."account_id" = $1
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
    )
  order by "k"."created_at" desc, "k"."id" desc
  limit $2
)
order by "k"."created_at" desc, "k"."id" desc;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where "k"."creator_id" not in (
    select "id"
    from "users"
    where "deleted_at" is not null
  )
  order by "k"."created_at" desc, "k"."id" desc
  limit $1
)
order by "k"."created_at" desc, "k"."id" desc;

select count(*) as "total"
from "api_keys" as "k"
limit $1;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where 1 = 0
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
    )
  order by "k"."created_at" desc, "k"."id" desc
  limit $1
)
order by "k"."created_at" desc, "k"."id" desc;

select count(*) as "total"
from "api_keys" as "k"
where 1 = 0
limit $1;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."id" in (
  select "k"."id"
  from "api_keys" as "k"
  where "k"."creator_id" = $1
    and "k"."creator_id" not in (
      select "id"
      from "users"
      where "deleted_at" is not null
    )
    and (k.created_at, k.id) < ($2, $3)
  order by "k"."created_at" desc, "k"."id" desc
  limit $4
)
order by "k"."created_at" desc, "k"."id" desc;

select count(*) as "total"
from "api_keys"
where "creator_id" = $1
  and "creator_id" in ($2)
limit $3;

-- apiKeys.find

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."creator_id" = $1
  and "u"."deleted_at" is null
  and "k"."id" = $2;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where ("k"."account_id" = $1 or "k"."creator_id" = $2)
  and "u"."deleted_at" is null
  and "k"."id" = $3;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where coalesce(u.partner_id, k.partner_id) = $1
  and "u"."deleted_at" is null
  and "k"."id" = $2;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."account_id" = $1
  and "u"."deleted_at" is null
  and "k"."id" = $2;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "u"."deleted_at" is null
  and "k"."id" = $1;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where 1 = 0
  and "u"."deleted_at" is null
  and "k"."id" = $1;

-- apiKeys.page

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."creator_id" = $1
  and "k"."creator_id" not in (
    select "id"
    from "users"
    where "deleted_at" is not null
  )
order by "k"."id" desc
limit $2;

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."creator_id" = $1
  and "k"."creator_id" not in (
    select "id"
    from "users"
    where "deleted_at" is not null
  )
  and "k"."id" < $2
order by "k"."id" desc
limit $3;

-- apiKeys.findAll

with "some" as materialized (
  select *
  from "api_keys"
  where "id" in ($1)
)
select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "some" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."creator_id" = $2
  and "u"."deleted_at" is null;

-- apiKeys.findByDigest

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
where "k"."creator_id" = $1
  and "u"."deleted_at" is null
  and "k"."digest" = $2;

-- apiKeys.details

select "k".*, "u"."name" as "creator_name", "u"."email" as "creator_email", "u"."disabled_at" as "creator_disabled_at",
  "u"."last_sign_in_at" as "creator_seen_at", "u"."partner_id" as "creator_current_partner_id", "ca"."name" as "created_account_name",
  "cp"."name" as "created_partner_name", "ra"."id" as "reached_account_id", "ra"."name" as "reached_account_name",
  "rp"."id" as "reached_partner_id", "rp"."name" as "reached_partner_name"
from "api_keys" as "k"
inner join "users" as "u" on "u"."id" = "k"."creator_id"
left join "accounts" as "ca" on "ca"."id" = "k"."account_id"
inner join "partners" as "cp" on "cp"."id" = "k"."partner_id"
left join "accounts" as "ra" on "ra"."id" = CASE u.user_type WHEN 'account' THEN u.account_id WHEN 'staff' THEN k.account_id END
inner join "partners" as "rp" on "rp"."id" = CASE u.user_type WHEN 'staff' THEN k.partner_id ELSE u.partner_id END
where "k"."creator_id" = $1
  and "u"."deleted_at" is null
  and "k"."id" = $2;

-- apiKeys.usage

select *
from "api_key_usage"
where "api_key_id" = $1
  and "quarter_at" >= $2;

-- apiKeys.countQueuedCalls

SELECT api_key_id, count(*) AS calls
FROM calls
WHERE due_at IS NOT NULL
  AND api_key_id IN ($1)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
GROUP BY api_key_id;

-- apiKeys.revoke

select "id"
from "api_keys"
where "id" in ($1)
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
where "id" in ($3);

INSERT INTO api_key_tallies (scope, id, keys)
SELECT 'creator_id', creator_id, -1 * count(*)
FROM api_keys
WHERE id IN ($1)
  AND creator_id IS NOT NULL
GROUP BY creator_id
UNION ALL
SELECT 'creator_partner_id', creator_partner_id, -1 * count(*)
FROM api_keys
WHERE id IN ($2)
  AND creator_partner_id IS NOT NULL
GROUP BY creator_partner_id
UNION ALL
SELECT 'account_id', account_id, -1 * count(*)
FROM api_keys
WHERE id IN ($3)
  AND account_id IS NOT NULL
GROUP BY account_id
UNION ALL
SELECT 'partner_id', partner_id, -1 * count(*)
FROM api_keys
WHERE id IN ($4)
  AND partner_id IS NOT NULL
GROUP BY partner_id;

delete from "api_keys"
where "id" in ($1);

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > ($1, $2, $3, $4, $5)
  AND api_key_id IN ($6)
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT $7;

WITH changed AS (
  WITH found AS MATERIALIZED (
    SELECT r.*
    FROM (
      SELECT (e.value->>0)::text AS campaign_id, (e.value->>1)::text AS contact_id, (e.value->>2)::bigint AS at
      FROM jsonb_array_elements($1::jsonb) AS e(value)
    ) AS r
    CROSS JOIN calls
    WHERE calls.campaign_id = r.campaign_id
      AND calls.contact_id = r.contact_id
      AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
    FOR UPDATE OF calls SKIP LOCKED
  )
  UPDATE calls
  SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
  FROM found
  WHERE calls.campaign_id = found.campaign_id
    AND calls.contact_id = found.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS (
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*)
  FROM changed
  GROUP BY 1, 2, 3
)
SELECT contact_id
FROM changed;

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

SELECT DISTINCT api_key_id
FROM calls
WHERE due_at IS NOT NULL
  AND due_at > $1
  AND api_key_id IN ($2)
  AND ((state = 'dialing' AND handoff IN ('open')));

update "retired_api_keys"
set "cancelling_since" = $1
where "id" in ($2);

-- apiKeys.finishCancelling

select "id"
from "retired_api_keys"
where "cancelling_since" is not null
  and "id" > $1
order by "id" asc
limit $2;

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id
FROM calls
WHERE due_at IS NOT NULL
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > ($1, $2, $3, $4, $5)
  AND EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.cancelling_since IS NOT NULL
  )
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT $6;

WITH changed AS (
  WITH found AS MATERIALIZED (
    SELECT r.*
    FROM (
      SELECT (e.value->>0)::text AS campaign_id, (e.value->>1)::text AS contact_id, (e.value->>2)::bigint AS at
      FROM jsonb_array_elements($1::jsonb) AS e(value)
    ) AS r
    CROSS JOIN calls
    WHERE calls.campaign_id = r.campaign_id
      AND calls.contact_id = r.contact_id
      AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
    FOR UPDATE OF calls SKIP LOCKED
  )
  UPDATE calls
  SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
  FROM found
  WHERE calls.campaign_id = found.campaign_id
    AND calls.contact_id = found.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS (
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*)
  FROM changed
  GROUP BY 1, 2, 3
)
SELECT contact_id
FROM changed;

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

SELECT DISTINCT api_key_id
FROM calls
WHERE due_at IS NOT NULL
  AND due_at > $1
  AND EXISTS (
    SELECT 1
    FROM retired_api_keys k
    WHERE k.id = calls.api_key_id
      AND k.cancelling_since IS NOT NULL
  )
  AND ((state = 'dialing' AND handoff IN ('open')));

update "retired_api_keys"
set "cancelling_since" = $1
where "id" in ($2);

-- apiKeys.compactCounts

WITH changed AS (
  SELECT scope, id
  FROM api_key_tallies
  GROUP BY scope, id
  HAVING count(*) > 1
), removed AS (
  DELETE FROM api_key_tallies t USING changed c
  WHERE t.scope = c.scope
    AND t.id = c.id
  RETURNING t.scope, t.id, t.keys
)
INSERT INTO api_key_tallies
SELECT scope, id, sum(keys)
FROM removed
GROUP BY scope, id;

-- apiKeys.countByDaysLeft

WITH bounds (now, week, month) AS (VALUES (CAST($1 AS bigint), CAST($2 AS bigint), CAST($3 AS bigint)))
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
  SELECT (e.value->>0)::text AS digest, (e.value->>1)::bigint AS at, (e.value->>2)::text AS address
  FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
WHERE api_keys.digest = r.digest
  AND (api_keys.last_used_at IS NULL OR api_keys.last_used_at < r.at);

INSERT INTO api_key_addresses (api_key_id, address, used_at)
SELECT k.id, r.address, r.at
FROM (
  SELECT (e.value->>0)::text AS digest, (e.value->>1)::text AS address, (e.value->>2)::bigint AS at
  FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
CROSS JOIN api_keys k
WHERE k.digest = r.digest
ON CONFLICT (api_key_id, address)
DO UPDATE SET used_at = excluded.used_at
WHERE api_key_addresses.used_at < excluded.used_at;

INSERT INTO api_key_usage (api_key_id, quarter_at, placed, cancelled, refused)
SELECT k.id, r.quarter_at, r.placed, r.cancelled, r.refused
FROM (
  SELECT (e.value->>0)::text AS digest, (e.value->>1)::bigint AS quarter_at, (e.value->>2)::bigint AS placed,
    (e.value->>3)::bigint AS cancelled, (e.value->>4)::bigint AS refused
  FROM jsonb_array_elements($1::jsonb) AS e(value)
) AS r
CROSS JOIN api_keys k
WHERE k.digest = r.digest
ON CONFLICT (api_key_id, quarter_at)
DO UPDATE SET placed = api_key_usage.placed + excluded.placed, cancelled = api_key_usage.cancelled + excluded.cancelled,
  refused = api_key_usage.refused + excluded.refused;
