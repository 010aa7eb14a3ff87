-- retention.recordDays

select *
from `recorded_retention`
limit ?;

insert into `recorded_retention` (`audit_event_days`, `contact_days`, `one`)
values (?, ?, ?)
on conflict (`one`)
do update set `audit_event_days` = excluded.`audit_event_days`, `contact_days` = excluded.`contact_days`,
  `one` = excluded.`one`;

-- retention.recordedDays

select *
from `recorded_retention`
limit ?;

-- retention.countErasable

select count(*) as `calls`
from `calls`
where `ended_at` is not null
  and `phone` is not null
  and max(ended_at, coalesce(dialed_at, ended_at)) < ?
limit ?;

select min(max(ended_at, coalesce(dialed_at, ended_at))) AS since
from `calls`
where `ended_at` is not null
  and `phone` is not null
  and max(ended_at, coalesce(dialed_at, ended_at)) < ?
limit ?;

-- retention.erase

with `some` as materialized (
  select `campaign_id`, `contact_id`
  from `calls`
  where `ended_at` is not null
    and `phone` is not null
    and max(ended_at, coalesce(dialed_at, ended_at)) < ?
  limit ?
)
update `calls`
set `phone` = ?, `name` = ?, `time_zone` = ?, `variables` = ?, `detail` = ?
where (`campaign_id`, `contact_id`) in (
  select `campaign_id`, `contact_id`
  from `some`
);

-- retention.forgetCounts

delete from `api_key_usage`
where (`api_key_id`, `quarter_at`) in (
  select `api_key_id`, `quarter_at`
  from `api_key_usage`
  where `quarter_at` < ?
  limit ?
);

delete from `call_counts`
where (`campaign_id`, `quarter_at`, `state`) in (
  select `campaign_id`, `quarter_at`, `state`
  from `call_counts`
  where `quarter_at` < ?
  limit ?
);

delete from `api_key_days`
where (`api_key_id`, `day`) in (
  select `api_key_id`, `day`
  from `api_key_days`
  where `day` < ?
  limit ?
);

delete from `api_key_addresses`
where (`api_key_id`, `address`) in (
  select `api_key_id`, `address`
  from `api_key_addresses`
  where `used_at` < ?
  limit ?
);

-- contacts.findCalls

SELECT campaign_id, contact_id
FROM calls
WHERE (campaign_id, contact_id) > (?, ?)
ORDER BY campaign_id, contact_id
LIMIT 1 OFFSET ?;

WITH found AS MATERIALIZED (
  SELECT *
  FROM calls
  WHERE (campaign_id, contact_id) > (?, ?)
    AND phone = ?
)
SELECT found.*, c.name AS campaign_name, a.name AS account_name
FROM found
JOIN campaigns c ON c.id = found.campaign_id
JOIN accounts a ON a.id = found.account_id;

-- contacts.erase

WITH found AS MATERIALIZED (
  SELECT r.*
  FROM (
    SELECT value->>0 AS campaign_id, value->>1 AS contact_id, value->>2 AS at
    FROM jsonb_each(?)
  ) AS r
  CROSS JOIN calls
  WHERE calls.campaign_id = r.campaign_id
    AND calls.contact_id = r.contact_id
    AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
)
UPDATE calls
SET state = 'cancelled', due_at = NULL, cancelled_at = found.at, ended_at = found.at
FROM found
WHERE calls.campaign_id = found.campaign_id
  AND calls.contact_id = found.contact_id
  AND (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
RETURNING calls.contact_id;

update `calls`
set `phone` = ?, `name` = ?, `time_zone` = ?, `variables` = ?, `detail` = ?
where `ended_at` is not null
  and (`campaign_id`, `contact_id`) in (values (?, ?));

insert into `audit_events` (`account_id`, `action`, `actor_id`, `actor_name`, `address`, `at`, `detail`, `id`,
  `partner_id`, `subject_id`, `subject_kind`, `subject_name`)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- clock.read

SELECT newest_at, NULL AS server_at
FROM clock;

-- clock.advance

update `clock`
set `newest_at` = ?
where (`newest_at` is null or `newest_at` < ?);

-- clock.set

update `clock`
set `newest_at` = ?;
