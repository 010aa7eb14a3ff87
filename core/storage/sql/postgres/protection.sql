-- protection.addNumbers

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

delete from "do_not_call"
where "scope_id" = $1
  and "phone" in ($2)
  and "ends_at" < $3;

insert into "do_not_call" ("account_id", "campaign_id", "contact_id", "created_at", "created_by_id",
  "created_by_name", "ends_at", "id", "note", "partner_id", "phone", "reason", "scope_id", "source")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict ("scope_id", "phone")
do update set "ends_at" = excluded.ends_at
where do_not_call.ends_at IS NOT NULL
  AND (excluded.ends_at IS NULL OR excluded.ends_at > do_not_call.ends_at)
returning "id";

update "accounts"
set "lists_numbers" = $1
where "id" = $2
  and "lists_numbers" is null;

insert into "do_not_call_sweeps" ("account_id", "partner_id", "scope_id", "token")
values ($1, $2, $3, $4)
on conflict ("scope_id")
do update set "token" = $5;

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

SELECT count(*) AS calls
FROM calls
WHERE state = 'dialing'
  AND phone IN ($1)
  AND ((state = 'dialing' AND handoff IN ('open', 'doubt', 'taken')))
  AND account_id = $2;

update "partners"
set "lists_numbers" = $1
where "id" = $2
  and "lists_numbers" is null;

SELECT count(*) AS calls
FROM calls
WHERE state = 'dialing'
  AND phone IN ($1)
  AND ((state = 'dialing' AND handoff IN ('open', 'doubt', 'taken')))
  AND account_id IN (
    SELECT id
    FROM accounts
    WHERE partner_id = $2
  );

-- protection.lift

delete from "do_not_call"
where "id" = $1;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- protection.findEntry

select *
from "do_not_call"
where "account_id" = $1
  and "id" = $2;

-- protection.listNumbers

select *
from "do_not_call"
where "account_id" = $1
order by "id" desc
limit $2;

select "id", "name"
from "accounts"
where "id" in ($1);

select "id", "name"
from "partners"
where "id" in ($1);

select *
from "do_not_call"
where "partner_id" = $1
  and "id" < $2
order by "id" desc
limit $3;

select "id", "name"
from "accounts"
where "id" in ($1, $2);

select "id", "name"
from "partners"
where "id" in ($1, $2);

-- protection.searchNumbers

select *
from "do_not_call"
where "account_id" = $1
  and "phone" >= $2
  and "phone" < $3
order by "phone" asc, "id" asc
limit $4;

select "id", "name"
from "accounts"
where "id" in ($1);

select "id", "name"
from "partners"
where "id" in ($1);

select *
from "do_not_call"
where "partner_id" = $1
  and "phone" >= $2
  and "phone" < $3
  and (phone, id) > ($4, $5)
order by "phone" asc, "id" asc
limit $6;

select "id", "name"
from "accounts"
where "id" in ($1, $2);

select "id", "name"
from "partners"
where "id" in ($1, $2);

-- protection.findBlocking

select *
from "do_not_call"
where "scope_id" in ($1, $2)
  and "phone" = $3
  and ("ends_at" is null or "ends_at" >= $4);

-- protection.findScope

SELECT id, name, NULL AS account_id, id AS partner_id
FROM partners
WHERE id = $1;

SELECT id, name, id AS account_id, partner_id
FROM accounts
WHERE id = $1;

SELECT c.id, c.name, a.id AS account_id, a.partner_id
FROM campaigns c
JOIN accounts a ON a.id = c.account_id
WHERE c.id = $1;

-- protection.rulesOf

select *
from "protection_rules"
where "scope_id" = $1
limit $2;

-- protection.campaignRules

SELECT c.id AS campaign_id, a.id AS account_id, a.partner_id, p.rules_version, s.scope_id, s.hours,
  s.countries, s.kinds
FROM campaigns c
CROSS JOIN accounts a
CROSS JOIN partners p
LEFT JOIN protection_rules s ON s.scope_id IN (c.id, a.id, p.id)
WHERE c.id IN ($1)
  AND a.id = c.account_id
  AND p.id = a.partner_id;

-- protection.setRules

update "partners"
set "rules_version" = coalesce(rules_version, 0) + 1
where "id" = $1;

insert into "protection_rules" ("countries", "hours", "kinds", "partner_id", "scope_id")
values ($1, $2, $3, $4, $5)
on conflict ("scope_id")
do update set "countries" = $6;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

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

-- protection.blockListed

select *
from "do_not_call_sweeps"
order by "scope_id" asc;

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
from "accounts"
where "partner_id" = $1
  and "id" > $2
order by "id" asc
limit $3;

SELECT account_id,due_at,placed_at,api_key_id,contact_id,campaign_id, CASE
  WHEN (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) AND (
    SELECT 1
    FROM accounts la
    CROSS JOIN partners lp
    WHERE la.id = calls.account_id
      AND lp.id = la.partner_id
      AND ((la.lists_numbers IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.scope_id = la.id
          AND d.phone = calls.phone
          AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
        LIMIT 1
      ) IS NOT NULL) OR (lp.lists_numbers IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.scope_id = lp.id
          AND d.phone = calls.phone
          AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
        LIMIT 1
      ) IS NOT NULL))
  ) IS NOT NULL THEN 1
  ELSE 0
END AS flag
FROM calls
WHERE due_at IS NOT NULL
  AND account_id = $1
  AND (account_id,due_at,placed_at,api_key_id,contact_id) > ($2, $3, $4, $5, $6)
ORDER BY account_id,due_at,placed_at,api_key_id,contact_id
LIMIT $7;

with "some" as materialized (
  select "campaign_id", "contact_id"
  from "calls"
  where ("campaign_id", "contact_id") in (($1, $2))
    and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
    AND (
      SELECT 1
      FROM accounts la
      CROSS JOIN partners lp
      WHERE la.id = calls.account_id
        AND lp.id = la.partner_id
        AND ((la.lists_numbers IS NOT NULL AND (
          SELECT 1
          FROM do_not_call d
          WHERE d.scope_id = la.id
            AND d.phone = calls.phone
            AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
          LIMIT 1
        ) IS NOT NULL) OR (lp.lists_numbers IS NOT NULL AND (
          SELECT 1
          FROM do_not_call d
          WHERE d.scope_id = lp.id
            AND d.phone = calls.phone
            AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
          LIMIT 1
        ) IS NOT NULL))
    ) IS NOT NULL
  limit $3
  for update skip locked
)
update "calls"
set "state" = CASE CASE calls.state WHEN 'dialing' THEN calls.handoff ELSE calls.state END
  WHEN 'queued' THEN 'blocked'
  WHEN 'retry' THEN 'blocked'
END, "ended_at" = $4, "due_at" = $5, "detail" = $6
where ("campaign_id", "contact_id") in (
  select "campaign_id", "contact_id"
  from "some"
)
  and "state" in ($7, $8);

delete from "do_not_call_sweeps"
where "scope_id" = $1
  and "token" = $2;

-- protection.deleteEnded

delete from "do_not_call"
where "id" in (
  select "id"
  from "do_not_call"
  where "ends_at" < $1
    and "ends_at" is not null
  limit $2
);

-- protection.countHeld

SELECT count(*) AS held
FROM calls
WHERE held_until IS NOT NULL
  AND due_at IS NOT NULL
  AND held_until > $1;
