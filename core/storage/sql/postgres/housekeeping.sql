-- retention.recordDays

select *
from "recorded_retention"
limit $1;

insert into "recorded_retention" ("audit_event_days", "contact_days", "one")
values ($1, $2, $3)
on conflict ("one")
do update set "audit_event_days" = excluded."audit_event_days", "contact_days" = excluded."contact_days",
  "one" = excluded."one";

-- retention.recordedDays

select *
from "recorded_retention"
limit $1;

-- retention.countErasable

select count(*) as "calls"
from "calls"
where "ended_at" is not null
  and "phone" is not null
  and greatest(ended_at, coalesce(dialed_at, ended_at)) < $1
limit $2;

select min(greatest(ended_at, coalesce(dialed_at, ended_at))) AS since
from "calls"
where "ended_at" is not null
  and "phone" is not null
  and greatest(ended_at, coalesce(dialed_at, ended_at)) < $1
limit $2;

-- retention.erase

with "some" as materialized (
  select "campaign_id", "contact_id"
  from "calls"
  where "ended_at" is not null
    and "phone" is not null
    and greatest(ended_at, coalesce(dialed_at, ended_at)) < $1
  limit $2
  for update skip locked
)
update "calls"
set "phone" = $3, "name" = $4, "time_zone" = $5, "variables" = $6, "detail" = $7
where ("campaign_id", "contact_id") in (
  select "campaign_id", "contact_id"
  from "some"
);

-- retention.forgetCounts

delete from "api_key_usage"
where ("api_key_id", "quarter_at") in (
  select "api_key_id", "quarter_at"
  from "api_key_usage"
  where "quarter_at" < $1
  limit $2
);

delete from "call_counts"
where ("campaign_id", "quarter_at", "state") in (
  select "campaign_id", "quarter_at", "state"
  from "call_counts"
  where "quarter_at" < $1
  limit $2
);

delete from "api_key_days"
where ("api_key_id", "day") in (
  select "api_key_id", "day"
  from "api_key_days"
  where "day" < $1
  limit $2
);

delete from "api_key_addresses"
where ("api_key_id", "address") in (
  select "api_key_id", "address"
  from "api_key_addresses"
  where "used_at" < $1
  limit $2
);

-- contacts.findCalls

SELECT campaign_id, contact_id
FROM calls
WHERE (campaign_id, contact_id) > ($1, $2)
ORDER BY campaign_id, contact_id
LIMIT 1 OFFSET $3;

WITH found AS MATERIALIZED (
  SELECT *
  FROM calls
  WHERE (campaign_id, contact_id) > ($1, $2)
    AND phone = $3
)
SELECT found.*, c.name AS campaign_name, a.name AS account_name
FROM found
JOIN campaigns c ON c.id = found.campaign_id
JOIN accounts a ON a.id = found.account_id;

-- contacts.erase

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
    FOR UPDATE OF calls
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

update "calls"
set "phone" = $1, "name" = $2, "time_zone" = $3, "variables" = $4, "detail" = $5
where "ended_at" is not null
  and ("campaign_id", "contact_id") in (($6, $7));

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- clock.read

SELECT newest_at, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS server_at
FROM clock;

-- clock.advance

update "clock"
set "newest_at" = $1
where ("newest_at" is null or "newest_at" < $2);

-- clock.set

update "clock"
set "newest_at" = $1;
