-- Claims due calls, which the transaction has picked and checked against the rules, until the lease ends: see claim.sqlite.sql. The pairs are a
-- subquery: see stop.postgres.sql. `pick` has locked the calls, and skipped those that another dialer has locked.
UPDATE calls SET
  state = 'dialing', attempt = attempt + 1, due_at = r.lease_until, held_until = NULL, held_for = NULL,
  provider = CASE WHEN state = 'queued' OR handoff = 'retry' THEN r.provider ELSE calls.provider END,
  first_attempt_at = coalesce(first_attempt_at, r.now),
  detail = CASE WHEN state = 'dialing' AND handoff IN ('open', 'doubt') THEN NULL ELSE detail END,
  handoff = CASE
    WHEN state = 'queued' OR handoff = 'retry' THEN 'open'
    WHEN handoff IN ('open', 'doubt') THEN 'doubt'
    WHEN handoff = 'taken' THEN 'taken'
  END
FROM (
  SELECT $1::jsonb->>1 AS provider, ($1::jsonb->>2)::bigint AS now, ($1::jsonb->>3)::bigint AS lease_until
) AS r
WHERE (calls.campaign_id, calls.contact_id) IN (SELECT e.value->>0, e.value->>1 FROM jsonb_array_elements($1::jsonb->0) AS e(value))
  AND due_at <= r.now AND state IN ('queued', 'dialing')
  AND NOT ((state = 'queued' OR (state = 'dialing' AND handoff IN ('retry'))) AND (
    SELECT 1 FROM accounts la CROSS JOIN partners lp
    WHERE la.id = calls.account_id AND lp.id = la.partner_id
      AND (CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1 FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id) AND (d.ends_at IS NULL OR d.ends_at >= r.now)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL)
RETURNING
  calls.contact_id, calls.request_id, calls.campaign_id, calls.phone, calls.name, calls.time_zone, calls.variables, calls.placed_at,
  calls.not_before, calls.not_after, calls.attempt, calls.handoff, calls.first_attempt_at, calls.provider,
  (
    SELECT 1 FROM accounts la CROSS JOIN partners lp
    WHERE la.id = calls.account_id AND lp.id = la.partner_id
      AND (CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1 FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id) AND (d.ends_at IS NULL OR d.ends_at >= r.now)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL AS is_listed
