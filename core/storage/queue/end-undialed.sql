-- Ends calls that a rule stops, and that haven't been dialed: as `blocked` if their number must not be called, or as `lapsed` if calling hours
-- leave no time. The detail says why, without the number. With `if_listed`, it ends only calls whose number is on a do-not-call list.
--
-- The pairs are a subquery: `selectAmong` in queue.ts says why.
UPDATE calls SET state = r.state, ended_at = r.now, due_at = NULL, detail = r.detail
FROM (
  SELECT
    {{given}}->>1 AS state, CAST({{given}}->>2 AS bigint) AS now, {{given}}->>3 AS detail, CAST({{given}}->>4 AS bigint) = 1 AS if_listed
) AS r
WHERE (calls.campaign_id, calls.contact_id) IN (SELECT e.value->>0, e.value->>1 FROM {{firstRows}})
  AND (calls.state = 'queued' OR (calls.state = 'dialing' AND calls.handoff = 'retry'))
  AND (NOT r.if_listed OR {{isListed}})
RETURNING calls.campaign_id, calls.placed_at, calls.state
