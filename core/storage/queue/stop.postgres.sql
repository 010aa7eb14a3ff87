-- Ends calls that a rule stops, and that haven't been dialed: see stop.sqlite.sql. The pairs are a subquery, because a condition with a long
-- list of pairs could become a filter on all calls of a campaign: for 500 of 20,000 calls, that took 0.7 s, and ten times as long for ten times
-- as many.
WITH changed AS ( -- not in a shard
  UPDATE calls SET state = r.state, ended_at = r.now, due_at = NULL, detail = r.detail
  FROM (
    SELECT $1::jsonb->>1 AS state, ($1::jsonb->>2)::bigint AS now, $1::jsonb->>3 AS detail, ($1::jsonb->>4)::boolean AS if_listed
  ) AS r
  WHERE (calls.campaign_id, calls.contact_id) IN (SELECT e.value->>0, e.value->>1 FROM jsonb_array_elements($1::jsonb->0) AS e(value))
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
  RETURNING calls.campaign_id, calls.placed_at, calls.state, calls.contact_id
), counted AS ( -- not in a shard
  INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) -- not in a shard
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3 -- not in a shard
) -- not in a shard
SELECT contact_id FROM changed -- not in a shard
