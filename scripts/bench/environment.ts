import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { dirname } from 'node:path';
import { makeKeyValue } from '#contract/key-value.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import type { Database } from '../../core/storage/engine/database.ts';
import { repairCounts } from '../../core/storage/keys/key-counts.ts';
import { openDirect } from '../support/ports.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { createTenants, password } from '../support/tenants.ts';
import { type DatabaseKind, freshDatabase, run, startCore } from './processes.ts';
import { fill, makeQueuedCalls } from './seed.ts';
import { repeat } from './spread.ts';
import { wrkVersion } from './wrk.ts';

/** A core with its own database, valid keys and revoked keys. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

const makeKeys = (count: number) => Array.from({ length: count }, () => makeKeyValue(randomBytes));
/** More calls than a core can cancel in a second. */
export const cancelsPerSecond = 80_000;
export const placePath = (campaignId: string) => `/api/v1/campaigns/${campaignId}/contacts/on-demand`;

/** @param size how many keys and how many calls its tables start with */
export async function openStage(kind: DatabaseKind, size = 0) {
  const database = await freshDatabase(kind);
  const { ports, storage } = await openDirect(database);
  const tenants = await createTenants(ports);
  const { account, campaign, partner, users } = tenants;
  /** The owner of the thousand keys' calls. */
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId: partner.id, keyId: `${users.account.id}-0` };
  if (size > 0) await fill(storage.database, database, size, owner);
  const thousandKeys = await insertKeys(storage.database, 1_000, users.account, account);
  const core = await startCore(database);
  // Signs in as Tom, because Ada already has more keys than a user may create.
  const cookie = await signIn(core, 'tom');
  const revoked = await repeat(20, async () => {
    const { id, keyValue } = await createKey(core, cookie);
    await ask(core, 'DELETE', `/console/api-keys/${id}`, cookie);
    return keyValue;
  });
  let queued = 0;
  return {
    ...{ kind, database, ports, storage, tenants, owner, core, path: placePath(campaign.id), thousandKeys, revoked },
    /** Ten of the thousand keys. */
    keys: thousandKeys.slice(0, 10),
    key: thousandKeys[0] ?? '',
    unknown: makeKeys(1_000),
    /** Creates queued calls for the row that cancels calls. @returns the number before the first call's */
    async queue(seconds: number): Promise<number> {
      const from = queued;
      queued += seconds * cancelsPerSecond;
      await makeQueuedCalls(storage.database, database, owner, from, seconds * cancelsPerSecond);
      return from;
    },
    async close(): Promise<void> {
      await storage.close();
      await core.stop();
      // Some of these files are large.
      if (kind === 'sqlite') await rm(dirname(database.slice('sqlite:'.length)), { recursive: true });
    },
  };
}

/** Inserts a user's keys directly into the table. */
export async function insertKeys(database: Database, count: number, creator: { id: string }, account: { id: string; partnerId: string }) {
  const keys = makeKeys(count);
  const [account_id, partner_id] = [account.id, account.partnerId];
  const of = { creator_id: creator.id, creator_partner_id: partner_id, account_id, partner_id, name: 'Bench', created_at: Date.now() };
  const rows = keys.map((key, n) => ({ id: `${creator.id}-${n}`, digest: toDigest(key), ...of }));
  await database.write.batchInsert('api_keys', rows, 100);
  await repairCounts(database);
  return keys;
}

/** Sends a request to the console that must succeed. */
export async function ask(core: ServerProcess, method: string, path: string, cookie = '', body?: object): Promise<Response> {
  const headers = { ...(body && { 'Content-Type': 'application/json' }), Cookie: cookie };
  const response = await fetch(core.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${await response.text()}`);
  return response;
}

/** @returns the session's cookie */
export async function signIn(core: ServerProcess, name: string, secret = password): Promise<string> {
  const { headers } = await ask(core, 'POST', '/console/session', '', { email: `${name}@example.com`, password: secret });
  const cookies = headers.getSetCookie().map((cookie) => cookie.split(';')[0]);
  return cookies.join('; ');
}

export async function createKey(core: ServerProcess, cookie: string): Promise<{ id: string; keyValue: string }> {
  const body = { name: 'Bench', expiration: { kind: 'none' }, timeZone: 'Europe/Berlin' };
  const { apiKey, keyValue } = JSON.parse(await (await ask(core, 'POST', '/console/api-keys', cookie, body)).text());
  return { id: apiKey.id, keyValue };
}

/** When, on which machine and at which commit figures were measured. The commit has a note if the working tree had changes. */
export async function describeOrigin() {
  const git = async (...args: string[]) => (await run('git', args).catch(() => ({ stdout: '' }))).stdout.trim();
  const machine: Record<string, string> = {
    processor: `${cpus().length} cores of ${cpus()[0]?.model}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: `Node.js ${process.versions.node}`,
    load: `${await wrkVersion()} on the same machine`,
  };
  const changes = await git('status', '--porcelain', '--untracked-files=no');
  const commit = (await git('rev-parse', '--short=12', 'HEAD')) || 'unknown';
  return { at: new Date().toISOString(), commit: changes === '' ? commit : `${commit} with changes`, machine };
}

export async function databaseVersion({ kind, storage }: Stage): Promise<string> {
  const sql = kind === 'sqlite' ? 'SELECT sqlite_version() AS version' : `SELECT current_setting('server_version') AS version`;
  const [row] = await storage.database.query<{ version: string }>(sql);
  return `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${row?.version}`;
}
