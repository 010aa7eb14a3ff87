-- Ends calls that a rule stops, and that haven't been dialed: as `blocked` if their number must not be called, or as `lapsed` if calling hours
-- leave no time. The detail says why, without the number. With `if_listed`, it ends only calls whose number is on a do-not-call list. A trigger
-- counts the ended calls.
UPDATE calls SET state = r.state, ended_at = r.now, due_at = NULL, detail = r.detail
FROM (SELECT ?1->>1 AS state, ?1->>2 AS now, ?1->>3 AS detail, ?1->>4 AS if_listed) AS r
WHERE (calls.campaign_id, calls.contact_id) IN (SELECT value->>0, value->>1 FROM jsonb_each(?1, '$[0]'))
  AND (calls.state = 'queued' OR (calls.state = 'dialing' AND calls.handoff IN ('retry')))
  AND (NOT r.if_listed OR (
    SELECT 1 FROM accounts la CROSS JOIN partners lp
    WHERE la.id = calls.account_id AND lp.id = la.partner_id
      AND (CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1 FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.has_do_not_call IS NOT NULL OR lp.has_do_not_call IS NOT NULL THEN lp.id END AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id) AND (d.ends_at IS NULL OR d.ends_at >= r.now)
        LIMIT 1
      ) IS NOT NULL)
  ) IS NOT NULL)
