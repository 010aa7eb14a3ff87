-- activity.record

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- activity.list

SELECT *
FROM audit_events INDEXED BY audit_events_of_actor
WHERE actor_id = ?
ORDER BY actor_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events INDEXED BY audit_events_of_account
WHERE account_id = ?
ORDER BY account_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events INDEXED BY audit_events_of_partner
WHERE partner_id = ?
ORDER BY partner_id DESC, id DESC
LIMIT 100;

SELECT *
FROM audit_events INDEXED BY audit_events_of_partner
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
  FROM audit_events INDEXED BY audit_events_of_actor_by_subject
  WHERE actor_id = ?
    AND subject_id = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_actor_by_action
  WHERE actor_id = ?
    AND action = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_partner_by_subject
  WHERE partner_id IS NULL
    AND subject_id = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_partner_by_actor
  WHERE partner_id IS NULL
    AND actor_id = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_partner_by_action
  WHERE partner_id IS NULL
    AND action = ?
  LIMIT 3000
) AS matching;

SELECT *
FROM audit_events INDEXED BY audit_events_of_actor_by_subject
WHERE actor_id = ?
  AND (action || '') = ?
  AND subject_id = ?
  AND (partner_id || '') IS NULL
  AND id >= ?
  AND id < ?
  AND at >= ?
  AND at < ?
ORDER BY actor_id DESC, subject_id DESC, id DESC
LIMIT 100;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_actor_by_subject
  WHERE actor_id IS NULL
    AND subject_id = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_actor_by_action
  WHERE actor_id IS NULL
    AND action = ?
  LIMIT 3000
) AS matching;

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_partner_by_actor
  WHERE partner_id IS NULL
    AND actor_id IS NULL
  LIMIT 3000
) AS matching;

SELECT *
FROM audit_events INDEXED BY audit_events_of_actor_by_action
WHERE actor_id IS NULL
  AND action = ?
  AND (subject_id || '') = ?
  AND (partner_id || '') IS NULL
  AND id >= ?
  AND id < ?
  AND at >= ?
  AND at < ?
ORDER BY actor_id DESC, action DESC, id DESC
LIMIT 100;

-- activity.count

SELECT count(*) AS events
FROM (
  SELECT 1
  FROM audit_events INDEXED BY audit_events_of_partner
  WHERE partner_id IS NULL
  LIMIT 1000
) AS matching;

-- activity.facets

SELECT *
FROM audit_events INDEXED BY audit_events_of_partner_by_actor
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

select `id`, `email`, `user_type`
from `users`
where `id` in (?)
  and `deleted_at` is null;

-- activity.listOfApiKey

SELECT *
FROM audit_events
WHERE subject_kind = 'api-key'
  AND subject_id = ?
  AND (partner_id IS NULL OR actor_id = ? OR action = ?)
ORDER BY id DESC
LIMIT 100;

SELECT *
FROM audit_events
WHERE subject_kind = 'api-key'
  AND subject_id = ?
  AND (actor_id = ? OR actor_id = ? OR action = ?)
ORDER BY id DESC
LIMIT 100;

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
