import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { dirname } from 'node:path';
import { makeKeyValue } from '#contract/key-value.ts';
import { revokeApiKeys, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import type { Account, User } from '../../core/domain/model.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import { openDirect } from '../support/ports.ts';
import { createTenants } from '../support/tenants.ts';
import { type DatabaseKind, freshDatabase, run, startCore, versionOf } from './processes.ts';
import { fill, makeQueuedCalls } from './seed.ts';
import { numbered, type Target, usualSeconds } from './wrk.ts';

/** A core with its own database, valid keys and revoked keys. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

const makeKeys = (count: number) => Array.from({ length: count }, () => makeKeyValue(randomBytes));
/** More calls than a core can cancel in a second. */
const cancelsPerSecond = 80_000;
export const placePath = (campaignId: string) => `/api/v1/campaigns/${campaignId}/contacts/on-demand`;

/** @param size the number of keys in its tables at the start, and also the number of calls */
export async function openStage(kind: DatabaseKind, size = 0) {
  const database = await freshDatabase(kind);
  const { ports, storage } = await openDirect(database);
  const tenants = await createTenants(ports);
  const { account, campaign, partner, users } = tenants;
  /** The owner of the thousand keys' calls. */
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId: partner.id, keyId: `${users.account.id}-0` };
  if (size > 0) await fill(storage.database, database, size, owner);
  const keys = await insertKeys(storage.database, 1_020, users.account, account);
  const ids = keys.map((_, n) => `${users.account.id}-${n}`).slice(1_000);
  const caller = { viewer: { ...users.account, tenancy: null }, actor: operator.actor };
  await revokeApiKeys(ports, caller, { ids, cancelQueuedCalls: false });
  const core = await startCore(database);
  const thousandKeys = keys.slice(0, 1_000);
  const [path, key] = [placePath(campaign.id), keys[0] ?? ''];
  const close = async () => {
    await storage.close();
    await core.stop();
    // Some databases are so large that they must not stay until the end of the run.
    if (kind === 'sqlite') await rm(dirname(database.slice('sqlite:'.length)), { recursive: true });
  };
  let queued = 0;
  return {
    ...{ kind, database, ports, storage, tenants, owner, core, path, key, thousandKeys },
    ...{ keys: keys.slice(0, 10), revoked: keys.slice(1_000), unknown: makeKeys(1_000) },
    /**
     * Prepares a load that cancels calls. Creates the calls of all rounds now, so that the database's cleanup after that doesn't slow down
     * a round.
     *
     * @param server the core to use @param seconds the duration of each round
     */
    async cancelling(rounds: number, server = core, seconds = usualSeconds): Promise<Target> {
      const perRound = seconds * cancelsPerSecond;
      const [from, count] = [queued, (rounds + 1) * perRound];
      queued += count;
      await makeQueuedCalls(storage.database, database, owner, from, count);
      return { ...numbered('cancel', { core: server, path, key }), seconds, from, perRound };
    },
    ...{ close, [Symbol.asyncDispose]: close },
  };
}

/** Inserts a user's keys directly into the table. Each ID is the user's ID and a number from 0. @param more values of other columns */
export async function insertKeys(database: Database, count: number, creator: User, { id, partnerId }: Account, more = {}) {
  const keys = makeKeys(count);
  const owners = { creator_id: creator.id, creator_partner_id: partnerId, account_id: id, partner_id: partnerId };
  const of = { ...owners, name: 'Bench', created_at: Date.now(), ...more };
  const rows = keys.map((key, n) => ({ id: `${creator.id}-${n}`, digest: toDigest(key), ...of }));
  await database.write.batchInsert('api_keys', rows, 100);
  return keys;
}

/** When, on which machine and at which commit figures were measured. The commit has a note if the working tree had changes. */
export async function describeOrigin() {
  const machine: Record<string, string> = {
    processor: `${cpus().length} cores of ${cpus()[0]?.model}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: `Node.js ${process.versions.node}`,
    load: `${await versionOf('wrk')} on the same machine`,
  };
  const describe = ['describe', '--always', '--exclude=*', '--abbrev=12', '--dirty= with changes'];
  const { stdout } = await run('git', describe).catch(() => ({ stdout: 'unknown' }));
  return { at: new Date().toISOString(), commit: stdout.trim(), machine };
}

export async function databaseVersion({ kind, storage }: Stage): Promise<string> {
  const sql = kind === 'sqlite' ? 'SELECT sqlite_version() AS version' : `SELECT current_setting('server_version') AS version`;
  const [row] = await storage.database.query<{ version: string }>(sql);
  return `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${row?.version}`;
}
