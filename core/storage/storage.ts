import type { Digest } from '../domain/model.ts';
import type { Clock } from '../domain/ports.ts';
import { activityStore, auditChainStore } from './audit/audit.ts';
import { callListStore } from './calls/call-list.ts';
import { contactStore } from './calls/contacts.ts';
import { type AddressRefusal, callStore, type ObserveBatch } from './calls/place-and-cancel.ts';
import { retentionStore } from './calls/retention.ts';
import { dialingStore } from './dialing/dialing.ts';
import { stopStore } from './dialing/stops.ts';
import { directoryStore } from './directory/directory.ts';
import { importStore } from './directory/import.ts';
import type { DatabaseLocation, OpenedDatabase } from './engine/database.ts';
import { reportingOutages } from './engine/errors.ts';
import { clockStore, freeBytes, readDatabaseStats, requireRights, requireRoom } from './engine/health.ts';
import { openPostgres } from './engine/postgres/postgres.ts';
import { openSqlite } from './engine/sqlite/sqlite.ts';
import { apiKeyStore } from './keys/api-keys.ts';
import { createKeyUse } from './keys/key-use.ts';
import { isMigrated, migrate, schemaState } from './migrate.ts';
import { doNotCallStore } from './protection/do-not-call.ts';
import { knownLists } from './protection/known.ts';
import { ruleStore } from './protection/rules.ts';
import type { OnStopped } from './queue/queue.ts';
import { linkStore } from './users/links.ts';
import { secondFactorStore } from './users/second-factors.ts';
import { sessionStore } from './users/sessions.ts';
import { throttleStore } from './users/throttle.ts';
import { userStore } from './users/users.ts';

type StorageObservers = {
  onBatch: ObserveBatch;
  /** Called when rules have stopped calls before they were dialed. */
  onStopped: OnStopped;
  onPlaced: () => void;
  onAddressRefused: (digest: Digest, address: string) => void;
  onBackgroundError: (error: unknown) => void;
  /** Called when a write wouldn't be durable. */
  onUnready: (error: unknown) => void;
};

/** Callbacks that do nothing, for command-line tools. */
export const unobserved: StorageObservers = {
  onBatch: () => undefined,
  onStopped: () => undefined,
  onPlaced: () => undefined,
  onAddressRefused: () => undefined,
  onBackgroundError: () => undefined,
  onUnready: () => undefined,
};

export type Storage = ReturnType<typeof openStorage>;

export function openStorage(location: DatabaseLocation, clock: Clock, observers: StorageObservers, ifMissing: 'make' | 'refuse' = 'make') {
  const database = openDatabase(location, ifMissing);
  const { lanes } = database;
  const { keys, background } = lanes;
  const keyUse = createKeyUse(background, clock, observers.onBackgroundError);
  const knownNumbers = knownLists(background);
  const refusals = later(({ digest, address, at, isActive }: AddressRefusal) => {
    if (!isActive) return;
    keyUse.noteRefused(digest, at);
    observers.onAddressRefused(digest, address);
  });
  const { throttle, imports, schema, ...stores } = reportingOutages({
    apiKeys: apiKeyStore(lanes),
    calls: callStore(keys, keyUse, knownNumbers, { ...observers, onAddressRefused: refusals.add }),
    sessions: sessionStore(lanes),
    links: linkStore(lanes),
    secondFactors: secondFactorStore(lanes),
    users: userStore(lanes),
    directory: directoryStore(lanes),
    callList: callListStore(lanes),
    activity: activityStore(lanes),
    dialing: dialingStore(background, clock, observers.onStopped),
    retention: retentionStore(background),
    auditChain: auditChainStore(lanes),
    contacts: contactStore(background),
    doNotCall: doNotCallStore(lanes),
    rules: ruleStore(lanes),
    stops: stopStore(lanes),
    clock: clockStore(lanes),
    throttle: throttleStore(lanes),
    imports: importStore(lanes),
    schema: { migrate: (signal?: AbortSignal) => migrate(database, signal), schema: () => schemaState(database) },
  });
  return {
    database,
    stores,
    throttle,
    imports,
    pools: listPools(database),
    stats: () => readDatabaseStats(background, freeBytes(location)),
    lastUsedLag: keyUse.lag,
    ...schema,
    /** Whether a write would be durable now, and the schema is complete. */
    async isReady(): Promise<boolean> {
      try {
        requireRoom(location);
        await keys.checkWritable();
        await requireRights(keys, location);
        return await isMigrated(keys);
      } catch (error) {
        observers.onUnready(error);
        return false;
      }
    },
    /** Calls `onAddressRefused` for the refusals that are still waiting. Call this before closing what that callback uses. */
    finishRefusals: refusals.finish,
    async close(): Promise<void> {
      refusals.finish();
      await keyUse.close();
      await knownNumbers.close();
      await database.close();
    },
  };
}

/** @param ifMissing what to do about a SQLite file that doesn't exist */
export function openDatabase(location: DatabaseLocation, ifMissing: 'make' | 'refuse'): OpenedDatabase {
  return location.kind === 'sqlite' ? openSqlite(location.filename, ifMissing) : openPostgres(location.url);
}

function listPools({ pools }: OpenedDatabase) {
  type Connections = { numUsed(): number; numFree(): number; numPendingAcquires(): number };
  return Array.from(pools, ([name, all]) => {
    const sum = (count: (pool: Connections) => number) => all.reduce((total, { client }) => total + count(client.pool), 0);
    return {
      name,
      use: () => ({
        used: sum((pool) => pool.numUsed()),
        free: sum((pool) => pool.numFree()),
        waiting: sum((pool) => pool.numPendingAcquires()),
      }),
    };
  });
}

/**
 * Handles items together, a few milliseconds after they were added. Even work that starts right after a response would delay a client on the
 * same processor.
 */
function later<Item>(handle: (item: Item) => void) {
  let waiting: Item[] = [];
  function finish(): void {
    const taken = waiting;
    waiting = [];
    for (const item of taken) handle(item);
  }
  return {
    add(item: Item): void {
      if (waiting.push(item) === 1) setTimeout(finish, 10).unref();
    },
    finish,
  };
}
