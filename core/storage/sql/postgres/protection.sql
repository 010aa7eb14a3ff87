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

update "partners"
set "lists_version" = CASE WHEN lists_version >= $1 THEN lists_version + 1 ELSE $2 END
where "id" = $3
returning "lists_version";

insert into "do_not_call_additions" ("partner_id", "phones", "version")
values ($1, $2, $3);

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

-- protection.entriesFor

select *
from "do_not_call"
where "partner_id" in (
  select "id"
  from "partners"
)
  and "phone" = $1;

-- protection.forget

delete from "do_not_call_additions";

delete from "do_not_call"
where "partner_id" in (
  select "id"
  from "partners"
)
  and "phone" = $1;

-- protection.optOutScope

select "opt_outs_for_partner"
from "accounts"
where "id" = $1
limit $2;

-- protection.setOptOutScope

update "accounts"
set "opt_outs_for_partner" = $1
where "id" = $2;

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
      AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
        SELECT 1
        FROM do_not_call d
        WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
          AND d.phone = calls.phone
          AND (d.account_id IS NULL OR d.account_id = la.id)
          AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
        LIMIT 1
      ) IS NOT NULL)
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
  where ("campaign_id", "contact_id") in (
    select "campaign_id", "contact_id"
    from unnest($1::text[], $2::text[]) AS pairs (campaign_id, contact_id)
  )
    and (state = 'queued' OR (state = 'dialing' AND handoff IN ('retry')))
    AND (
      SELECT 1
      FROM accounts la
      CROSS JOIN partners lp
      WHERE la.id = calls.account_id
        AND lp.id = la.partner_id
        AND (CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END IS NOT NULL AND (
          SELECT 1
          FROM do_not_call d
          WHERE d.partner_id = CASE WHEN la.lists_numbers IS NOT NULL OR lp.lists_numbers IS NOT NULL THEN lp.id END
            AND d.phone = calls.phone
            AND (d.account_id IS NULL OR d.account_id = la.id)
            AND (d.ends_at IS NULL OR d.ends_at >= 1795251600000)
          LIMIT 1
        ) IS NOT NULL)
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

delete from "do_not_call_additions"
where "version" < $1;

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

-- numberImports.begin

insert into "number_imports" ("committed_at", "entry", "id", "started_at")
values ($1, $2, $3, $4);

-- numberImports.addPart

insert into "number_import_parts" ("import_id", "part", "phones")
values ($1, $2, $3);

-- numberImports.commit

update "number_imports"
set "committed_at" = $1
where "id" = $2;

insert into "audit_events" ("account_id", "action", "actor_id", "actor_name", "address", "at", "detail", "id",
  "partner_id", "subject_id", "subject_kind", "subject_name")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- numberImports.moveSome

select *
from "number_imports"
where "id" = $1
limit $2
for update;

select *
from "number_import_parts"
where "import_id" = $1
order by "part" asc
limit $2;

delete from "do_not_call"
where "scope_id" = $1
  and "phone" in ($2, …)
  and "ends_at" < $52;

insert into "do_not_call" ("account_id", "campaign_id", "contact_id", "created_at", "created_by_id",
  "created_by_name", "ends_at", "id", "note", "partner_id", "phone", "reason", "scope_id", "source")
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14), ($15, $16, $17, $18, $19, $20, $21, $22,
  $23, $24, $25, $26, $27, $28), ($29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42), ($43,
  $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56), ($57, $58, $59, $60, $61, $62, $63, $64,
  $65, $66, $67, $68, $69, $70), ($71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84), ($85,
  $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98), ($99, $100, $101, $102, $103, $104, $105,
  $106, $107, $108, $109, $110, $111, $112), ($113, $114, $115, $116, $117, $118, $119, $120, $121, $122, $123,
  $124, $125, $126), ($127, $128, $129, $130, $131, $132, $133, $134, $135, $136, $137, $138, $139, $140), ($141,
  $142, $143, $144, $145, $146, $147, $148, $149, $150, $151, $152, $153, $154), ($155, $156, $157, $158, $159,
  $160, $161, $162, $163, $164, $165, $166, $167, $168), ($169, $170, $171, $172, $173, $174, $175, $176, $177,
  $178, $179, $180, $181, $182), ($183, $184, $185, $186, $187, $188, $189, $190, $191, $192, $193, $194, $195,
  $196), ($197, $198, $199, $200, $201, $202, $203, $204, $205, $206, $207, $208, $209, $210), ($211, $212,
  $213, $214, $215, $216, $217, $218, $219, $220, $221, $222, $223, $224), ($225, $226, $227, $228, $229, $230,
  $231, $232, $233, $234, $235, $236, $237, $238), ($239, $240, $241, $242, $243, $244, $245, $246, $247, $248,
  $249, $250, $251, $252), ($253, $254, $255, $256, $257, $258, $259, $260, $261, $262, $263, $264, $265, $266),
  ($267, $268, $269, $270, $271, $272, $273, $274, $275, $276, $277, $278, $279, $280), ($281, $282, $283,
  $284, $285, $286, $287, $288, $289, $290, $291, $292, $293, $294), ($295, $296, $297, $298, $299, $300, $301,
  $302, $303, $304, $305, $306, $307, $308), ($309, $310, $311, $312, $313, $314, $315, $316, $317, $318, $319,
  $320, $321, $322), ($323, $324, $325, $326, $327, $328, $329, $330, $331, $332, $333, $334, $335, $336), ($337,
  $338, $339, $340, $341, $342, $343, $344, $345, $346, $347, $348, $349, $350), ($351, $352, $353, $354, $355,
  $356, $357, $358, $359, $360, $361, $362, $363, $364), ($365, $366, $367, $368, $369, $370, $371, $372, $373,
  $374, $375, $376, $377, $378), ($379, $380, $381, $382, $383, $384, $385, $386, $387, $388, $389, $390, $391,
  $392), ($393, $394, $395, $396, $397, $398, $399, $400, $401, $402, $403, $404, $405, $406), ($407, $408,
  $409, $410, $411, $412, $413, $414, $415, $416, $417, $418, $419, $420), ($421, $422, $423, $424, $425, $426,
  $427, $428, $429, $430, $431, $432, $433, $434), ($435, $436, $437, $438, $439, $440, $441, $442, $443, $444,
  $445, $446, $447, $448), ($449, $450, $451, $452, $453, $454, $455, $456, $457, $458, $459, $460, $461, $462),
  ($463, $464, $465, $466, $467, $468, $469, $470, $471, $472, $473, $474, $475, $476), ($477, $478, $479,
  $480, $481, $482, $483, $484, $485, $486, $487, $488, $489, $490), ($491, $492, $493, $494, $495, $496, $497,
  $498, $499, $500, $501, $502, $503, $504), ($505, $506, $507, $508, $509, $510, $511, $512, $513, $514, $515,
  $516, $517, $518), ($519, $520, $521, $522, $523, $524, $525, $526, $527, $528, $529, $530, $531, $532), ($533,
  $534, $535, $536, $537, $538, $539, $540, $541, $542, $543, $544, $545, $546), ($547, $548, $549, $550, $551,
  $552, $553, $554, $555, $556, $557, $558, $559, $560), ($561, $562, $563, $564, $565, $566, $567, $568, $569,
  $570, $571, $572, $573, $574), ($575, $576, $577, $578, $579, $580, $581, $582, $583, $584, $585, $586, $587,
  $588), ($589, $590, $591, $592, $593, $594, $595, $596, $597, $598, $599, $600, $601, $602), ($603, $604,
  $605, $606, $607, $608, $609, $610, $611, $612, $613, $614, $615, $616), ($617, $618, $619, $620, $621, $622,
  $623, $624, $625, $626, $627, $628, $629, $630), ($631, $632, $633, $634, $635, $636, $637, $638, $639, $640,
  $641, $642, $643, $644), ($645, $646, $647, $648, $649, $650, $651, $652, $653, $654, $655, $656, $657, $658),
  ($659, $660, $661, $662, $663, $664, $665, $666, $667, $668, $669, $670, $671, $672), ($673, $674, $675,
  $676, $677, $678, $679, $680, $681, $682, $683, $684, $685, $686), ($687, $688, $689, $690, $691, $692, $693,
  $694, $695, $696, $697, $698, $699, $700)
on conflict ("scope_id", "phone")
do update set "ends_at" = excluded.ends_at
where do_not_call.ends_at IS NOT NULL
  AND (excluded.ends_at IS NULL OR excluded.ends_at > do_not_call.ends_at)
returning "id";

update "accounts"
set "lists_numbers" = $1
where "id" = $2
  and "lists_numbers" is null;

update "partners"
set "lists_version" = CASE WHEN lists_version >= $1 THEN lists_version + 1 ELSE $2 END
where "id" = $3
returning "lists_version";

insert into "do_not_call_additions" ("partner_id", "phones", "version")
values ($1, $2, $3);

insert into "do_not_call_sweeps" ("account_id", "partner_id", "scope_id", "token")
values ($1, $2, $3, $4)
on conflict ("scope_id")
do update set "token" = $5;

update "number_import_parts"
set "phones" = $1
where "import_id" = $2
  and "part" = $3;

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

delete from "number_import_parts"
where "import_id" = $1
  and "part" = $2;

-- numberImports.finish

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

delete from "number_imports"
where "id" = $1;

-- numberImports.discard

delete from "number_import_parts"
where "import_id" = $1;

delete from "number_imports"
where "id" = $1;

-- numberImports.listStartedBefore

select "id", "started_at", "committed_at"
from "number_imports"
where "started_at" < $1
order by "id" asc;

-- knownLists.refresh

select "campaigns"."id" as "id", "accounts"."partner_id" as "partnerId"
from "campaigns"
inner join "accounts" on "accounts"."id" = "campaigns"."account_id"
where "campaigns"."id" in ($1);

select "id", "lists_version"
from "partners"
where "id" in ($1)
  and "lists_version" is not null;

SELECT max(phone) AS last, count(*) AS found
FROM (
  SELECT phone
  FROM do_not_call
  WHERE partner_id = $1
    AND phone > $2
  ORDER BY phone
  LIMIT 5000
) AS chunk;

SELECT max(phone) AS last, string_agg(phone, ' ') AS found
FROM (
  SELECT phone
  FROM do_not_call
  WHERE partner_id = $1
    AND phone > $2
  ORDER BY phone
  LIMIT 5000
) AS chunk;

select *
from "do_not_call_additions"
where "partner_id" = $1
  and "version" >= $2
order by "version" asc
limit $3;
