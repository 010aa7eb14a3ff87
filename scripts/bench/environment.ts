import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeKeyValue } from '#contract/key-value.ts';
import { pathTo } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';
import { digestOf } from '../../core/domain/api-keys.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import { type DatabaseKind, freshDatabase } from '../../test/support/databases.ts';
import { ask } from '../../test/support/http.ts';
import { createKey, createTenants, type DirectAccess, openDirect, signIn, type Tenants } from '../../test/support/tenants.ts';
import { hasProc, parseStat } from './proc.ts';
import { type Server, startCore } from './processes.ts';
import { fill, makeQueuedCalls } from './seed.ts';

/** A core on a database of its own, with keys to use and some that are revoked. */
export type Stage = {
  kind: DatabaseKind;
  database: string;
  core: Server;
  /** The process id of the PostgreSQL server, where the system tells of its processes. */
  postgres: number | undefined;
  direct: DirectAccess;
  tenants: Tenants;
  /** Of the place endpoint; the others begin with it. */
  path: string;
  /** Ten of the thousand. */
  keys: readonly string[];
  thousandKeys: readonly string[];
  unknown: readonly string[];
  revoked: readonly string[];
  /** Makes queued calls for the row that cancels. @returns the number before the first */
  queue(count: number): Promise<number>;
  /** Another core on the same database, instead of the one there was. */
  restart(environment?: Record<string, string>): Promise<void>;
  close(): Promise<void>;
};

export const manyKeys = (count: number) => Array.from({ length: count }, () => makeKeyValue(randomBytes));

/** @param size how many keys, and as many calls, are in its tables already */
export async function openStage(kind: DatabaseKind, size = 0): Promise<Stage> {
  const database = await freshDatabase(kind);
  const direct = await openDirect(database);
  const tenants = await createTenants(direct.ports);
  const { account, campaign, partner } = tenants;
  if (size > 0)
    await fill(direct.storage.database, database, size, { accountId: account.id, campaignId: campaign.id, partnerId: partner.id });
  const thousandKeys = manyKeys(1_000);
  const keyIds = await insertKeys(direct.storage.database, tenants, thousandKeys);
  const core = await startCore(database);
  let queued = 0;
  const stage: Stage = {
    ...{ kind, database, core, direct, tenants, thousandKeys },
    postgres: kind === 'postgres' && hasProc ? await postgresOf(direct) : undefined,
    path: pathTo(routes.placeCall, { campaignId: campaign.id }),
    keys: thousandKeys.slice(0, 10),
    unknown: manyKeys(1_000),
    revoked: await makeRevoked(core.url),
    async queue(count) {
      const from = queued;
      queued += count;
      const owner = { campaignId: campaign.id, accountId: account.id, keyId: keyIds[0] ?? '' };
      await makeQueuedCalls(direct.storage.database, database, owner, from, count);
      return from;
    },
    async restart(environment = {}) {
      await stage.core.stop();
      stage.core = await startCore(database, environment);
    },
    async close() {
      await direct.close();
      await stage.core.stop();
      // Some of these files are large.
      if (kind === 'sqlite') rmSync(dirname(database.slice('sqlite:'.length)), { recursive: true });
    },
  };
  return stage;
}

/** The parent of the process behind a connection. */
async function postgresOf({ storage }: DirectAccess): Promise<number> {
  const [row] = await storage.database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return parseStat(readFileSync(`/proc/${row?.pid}/stat`, 'utf8')).parent;
}

/** Ada's, put straight into the table. @returns their ids */
async function insertKeys(database: Database, { account, partner, users }: Tenants, keys: readonly string[]): Promise<string[]> {
  const rows = keys.map((keyValue, n) => ({
    ...{ id: `bench-${n}`, digest: digestOf(keyValue), name: 'Bench', created_at: Date.now() },
    ...{ creator_id: users.account.id, creator_partner_id: partner.id, account_id: account.id, partner_id: partner.id },
  }));
  await database.write.batchInsert('api_keys', rows, 100);
  return rows.map(({ id }) => id);
}

async function makeRevoked(url: string): Promise<string[]> {
  // Not Ada: she has more keys already than a user may create.
  const cookie = await signIn(url, 'tom@example.com');
  const made = await Promise.all(Array.from({ length: 20 }, () => createKey(url, cookie)));
  for (const { id } of made) await ask('DELETE', `${url}${pathTo(routes.revokeApiKey, { id })}`, { cookie });
  return made.map(({ keyValue }) => keyValue);
}
