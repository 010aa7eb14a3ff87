-- activity.record

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- activity.list

SELECT *
FROM audit_events
WHERE (actor_id) >= ($1)
  AND (actor_id) <= ($2)
ORDER BY actor_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE (account_id) >= ($1)
  AND (account_id) <= ($2)
ORDER BY account_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE (partner_id) >= ($1)
  AND (partner_id) <= ($2)
ORDER BY partner_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE partner_id IS NULL
ORDER BY partner_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE 1 = 0
ORDER BY id
LIMIT 100;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE actor_id = $1
    AND subject_id = $2
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE actor_id = $1
    AND action = $2
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE partner_id IS NULL
    AND subject_id = $1
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE partner_id IS NULL
    AND actor_id = $1
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE partner_id IS NULL
    AND action = $1
  LIMIT 3000
) AS matching;

SELECT *
FROM audit_events
WHERE action >= $1
  AND action <= $2
  AND partner_id IS NULL
  AND (actor_id, subject_id, id) >= ($3, $4, $5)
  AND (actor_id, subject_id, id) < ($6, $7, $8)
  AND at >= $9
  AND at < $10
ORDER BY actor_id DESC, subject_id DESC, id DESC
LIMIT 100;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE actor_id IS NULL
    AND subject_id = $1
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE actor_id IS NULL
    AND action = $1
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE partner_id IS NULL
    AND actor_id IS NULL
  LIMIT 3000
) AS matching;

SELECT *
FROM audit_events
WHERE actor_id IS NULL
  AND action = $1
  AND (subject_id || '') = $2
  AND (partner_id || '') IS NULL
  AND id >= $3
  AND id < $4
  AND at >= $5
  AND at < $6
ORDER BY actor_id DESC, action DESC, id DESC
LIMIT 100;

-- activity.count

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events
  WHERE partner_id IS NULL
  LIMIT 1000
) AS matching;

-- activity.facets

SELECT *
FROM audit_events
WHERE actor_id IS NULL
  AND partner_id IS NULL
ORDER BY partner_id DESC, actor_id DESC, id DESC
LIMIT 1;

WITH RECURSIVE found (value) AS (
  SELECT (
    SELECT actor_id
    FROM audit_events
    WHERE partner_id IS NULL
      AND actor_id > ''
    ORDER BY partner_id, actor_id
    LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT actor_id
    FROM audit_events
    WHERE partner_id IS NULL
      AND actor_id > found.value
    ORDER BY partner_id, actor_id
    LIMIT 1
  )
  FROM found
  WHERE found.value IS NOT NULL
)
SELECT found.value, (
  SELECT actor_name
  FROM audit_events
  WHERE partner_id IS NULL
    AND actor_id = found.value
  ORDER BY partner_id DESC, actor_id DESC, id DESC
  LIMIT 1
) AS latest
FROM found
WHERE found.value IS NOT NULL;

WITH RECURSIVE found (value) AS (
  SELECT (
    SELECT action
    FROM audit_events
    WHERE partner_id IS NULL
      AND action > ''
    ORDER BY partner_id, action
    LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT action
    FROM audit_events
    WHERE partner_id IS NULL
      AND action > found.value
    ORDER BY partner_id, action
    LIMIT 1
  )
  FROM found
  WHERE found.value IS NOT NULL
)
SELECT found.value, (
  SELECT action
  FROM audit_events
  WHERE partner_id IS NULL
    AND action = found.value
  ORDER BY partner_id DESC, action DESC, id DESC
  LIMIT 1
) AS latest
FROM found
WHERE found.value IS NOT NULL;

select "id", "email", "user_type"
from "users"
where "id" in ($1)
  and "deleted_at" is null;

-- activity.listOfApiKey

SELECT *
FROM audit_events
WHERE subject_kind = 'api-key'
  AND subject_id = $1
  AND (partner_id IS NULL OR actor_id = $2 OR action = $3)
ORDER BY id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE subject_kind = 'api-key'
  AND subject_id = $1
  AND (actor_id = $2 OR actor_id = $3 OR action = $4)
ORDER BY id DESC
LIMIT 100;

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
