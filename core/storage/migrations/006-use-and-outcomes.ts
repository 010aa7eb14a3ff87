import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * Counts what the console shows in charts: how many calls each key placed and cancelled, and how the calls of each campaign ended. The
 * counts are by quarter-hour, because in all of today's time zones, days begin on a quarter-hour. See
 * core/docs/decisions/counted-by-the-quarter.md.
 *
 * A trigger counts a call when it ends, not when it's placed, so a placed call doesn't cost more than before. On PostgreSQL, each call that
 * ends adds a row, and housekeeping adds these up, because otherwise all dialers and cancels of a campaign would wait for each other.
 */
export async function up(trx: Knex, dialect: Dialect): Promise<void> {
  for (const statement of dialect === 'postgres' ? postgres : sqlite) await trx.raw(statement).options(patient);
}

/** In ms. Counting millions of calls for the first time can take longer than the usual limit for a statement. */
const patient = { query_timeout: 3_600_000 };

const quarter = 900_000;
const quarterOf = (at: string) => `${at} - ${at} % ${quarter}`;
/** In ms. No chart shows older calls. */
const month = 31 * 86_400_000;
const newest = `placed_at > (SELECT max(placed_at) FROM calls) - ${month}`;

const usage = `INSERT INTO api_key_usage (api_key_id, quarter_at, placed, cancelled)
  SELECT k.id, ${quarterOf('calls.placed_at')}, count(*), count(calls.cancelled_at)
  FROM calls CROSS JOIN api_keys k WHERE k.id = calls.api_key_id AND ${newest} GROUP BY 1, 2`;
const counts = `INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, ${quarterOf('placed_at')}, state, count(*) FROM calls WHERE ended_at IS NOT NULL AND ${newest} GROUP BY 1, 2, 3`;

const indexes = [
  `CREATE INDEX api_key_usage_to_forget ON api_key_usage (quarter_at)`,
  `CREATE INDEX call_counts_to_forget ON call_counts (quarter_at)`,
  `CREATE INDEX audit_events_of_api_key ON audit_events (subject_id, id) WHERE subject_kind = 'api-key'`,
  `CREATE INDEX api_keys_by_end ON api_keys (expires_at)`,
];

const hasEnded = `OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL`;
const ended = `NEW.campaign_id, ${quarterOf('NEW.placed_at')}, NEW.state, 1`;

const sqlite = [
  `CREATE TABLE api_key_usage (
    api_key_id text NOT NULL,
    quarter_at integer NOT NULL,
    placed integer NOT NULL,
    cancelled integer NOT NULL,
    PRIMARY KEY (api_key_id, quarter_at)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE call_counts (
    campaign_id text NOT NULL,
    quarter_at integer NOT NULL,
    state text NOT NULL,
    calls integer NOT NULL,
    PRIMARY KEY (campaign_id, quarter_at, state)
  ) STRICT, WITHOUT ROWID`,
  usage,
  counts,
  ...indexes,
  `CREATE TRIGGER count_ended AFTER UPDATE OF state ON calls WHEN ${hasEnded}
   BEGIN INSERT INTO call_counts (campaign_id, quarter_at, state, calls) VALUES (${ended}) ON CONFLICT DO UPDATE SET calls = calls + 1; END`,
];

const postgres = [
  // A core of an earlier release may be running. Calls that end between the count and the trigger would never be counted.
  `LOCK TABLE calls IN SHARE ROW EXCLUSIVE MODE`,
  `CREATE TABLE api_key_usage (
    api_key_id text COLLATE "C" NOT NULL,
    quarter_at bigint NOT NULL,
    placed bigint NOT NULL,
    cancelled bigint NOT NULL,
    PRIMARY KEY (api_key_id, quarter_at)
  )`,
  `CREATE TABLE call_counts (
    campaign_id text COLLATE "C" NOT NULL,
    quarter_at bigint NOT NULL,
    state text NOT NULL,
    calls bigint NOT NULL,
    PRIMARY KEY (campaign_id, quarter_at, state)
  )`,
  `CREATE TABLE call_count_changes (campaign_id text COLLATE "C" NOT NULL, quarter_at bigint NOT NULL, state text NOT NULL, calls bigint NOT NULL)`,
  usage,
  counts,
  ...indexes,
  `CREATE FUNCTION count_ended_call() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) VALUES (${ended});
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER count_ended AFTER UPDATE OF state ON calls FOR EACH ROW WHEN (${hasEnded}) EXECUTE FUNCTION count_ended_call()`,
];
