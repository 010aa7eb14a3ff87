import type { Digest } from '../domain/model.ts';
import type { Clock, ImportStore, Stores, ThrottleStore } from '../domain/ports.ts';
import { activityStore } from './audit/audit.ts';
import { auditChainStore } from './audit/audit-chain.ts';
import { callListStore } from './calls/call-list.ts';
import { contactStore } from './calls/contacts.ts';
import { type AddressRefusal, callStore, type ObserveBatch } from './calls/place-and-cancel.ts';
import { retentionStore } from './calls/retention.ts';
import type { OnStopped } from './dialing/claim.ts';
import { dialingStore } from './dialing/dialing.ts';
import { directoryStore } from './directory/directory.ts';
import { importStore } from './directory/import.ts';
import { tenancyStore } from './directory/tenancies.ts';
import { clockStore } from './engine/clock.ts';
import type { Database, DatabaseLocation, OpenedDatabase } from './engine/database.ts';
import { type DatabaseStats, readDatabaseStats } from './engine/database-stats.ts';
import { reportingOutages } from './engine/errors.ts';
import { later } from './engine/later.ts';
import { openDatabase } from './engine/open.ts';
import { freeBytes, requireRights, requireRoom } from './engine/rights.ts';
import { apiKeyStore } from './keys/api-keys.ts';
import { createKeyUse } from './keys/key-use.ts';
import { isMigrated, migrate, type SchemaState, schemaState } from './migrate.ts';
import { knownLists } from './protection/known-lists.ts';
import { protectionStore } from './protection/protection.ts';
import { linkStore } from './users/links.ts';
import { secondFactorStore } from './users/second-factors.ts';
import { sessionStore } from './users/sessions.ts';
import { throttleStore } from './users/throttle.ts';
import { userStore } from './users/users.ts';

/** A connection pool, for the metrics. */
type Pool = { name: string; use: () => { used: number; free: number; waiting: number } };

/** Callbacks for metrics, log and dialer. */
type StorageObservers = {
  onBatch: ObserveBatch;
  /** Called when rules have stopped calls before they were dialed. */
  onStopped: OnStopped;
  /** Called when a call was placed that may be due. */
  onPlaced: () => void;
  /** Called when an active key wasn't accepted from the client's address. */
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

export type Storage = {
  database: OpenedDatabase;
  stores: Stores;
  throttle: ThrottleStore;
  imports: ImportStore;
  pools: readonly Pool[];
  stats(): Promise<DatabaseStats>;
  /** Returns the age, in ms, of the oldest key use that hasn't been written yet. */
  lastUsedLag(): number;
  /** @returns the names of the migrations that were applied @throws Problem `conflict` if the database is newer than this program, or too old */
  migrate(signal?: AbortSignal): Promise<string[]>;
  /** @throws Problem `conflict` if the database is newer than this program, or too old */
  schema(): Promise<SchemaState>;
  /** Whether a write would be durable now, and the schema is complete. */
  isReady(): Promise<boolean>;
  /** Calls `onAddressRefused` for the refusals that are still waiting. Call this before closing what that callback uses. */
  finishRefusals(): void;
  close(): Promise<void>;
};

/** @param ifMissing what to do about a SQLite file that doesn't exist */
export function openStorage(
  location: DatabaseLocation,
  clock: Clock,
  observers: StorageObservers,
  ifMissing: 'make' | 'refuse' = 'make',
): Storage {
  const database = openDatabase(location, ifMissing);
  const { keys, lists, background, 'sign-in': signIn } = database.lanes;
  const listed = createStores(lists);
  const users = reportingOutages(userStore(database));
  const sweptKeys = reportingOutages(apiKeyStore(background));
  const sweptSessions = reportingOutages(sessionStore(background));
  const sweptUsers = reportingOutages(userStore(background));
  const sweptNumbers = reportingOutages(protectionStore(background));
  const keyUse = createKeyUse(background, clock, observers.onBackgroundError);
  const knownNumbers = knownLists(background);
  const refusals = later(({ digest, address, at, isActive }: AddressRefusal) => {
    if (!isActive) return;
    keyUse.noteRefused(digest, at);
    observers.onAddressRefused(digest, address);
  });
  return {
    database,
    stores: {
      apiKeys: {
        ...reportingOutages(apiKeyStore(database)),
        list: listed.apiKeys.list,
        usage: listed.apiKeys.usage,
        addresses: listed.apiKeys.addresses,
        countQueuedCalls: listed.apiKeys.countQueuedCalls,
        finishCancelling: sweptKeys.finishCancelling,
      },
      calls: reportingOutages(callStore(keys, keyUse, knownNumbers, { ...observers, onAddressRefused: refusals.add })),
      sessions: { ...reportingOutages(sessionStore(database)), sweep: sweptSessions.sweep, endDisallowed: sweptSessions.endDisallowed },
      links: { ...reportingOutages(linkStore(database)), sweepCodes: reportingOutages(linkStore(background)).sweepCodes },
      secondFactors: {
        ...reportingOutages(secondFactorStore(database)),
        listSealedOtherwise: reportingOutages(secondFactorStore(background)).listSealedOtherwise,
      },
      users: {
        ...users,
        findByEmail: reportingOutages(userStore(signIn)).findByEmail,
        list: listed.users.list,
        deletionImpact: listed.users.deletionImpact,
        finishDeletions: sweptUsers.finishDeletions,
        finishMoves: sweptUsers.finishMoves,
      },
      tenancies: {
        ...reportingOutages(tenancyStore(database)),
        listAccounts: listed.tenancies.listAccounts,
        listCampaigns: listed.tenancies.listCampaigns,
        search: listed.tenancies.search,
      },
      directory: {
        ...reportingOutages(directoryStore(database)),
        partners: listed.directory.partners,
        accounts: listed.directory.accounts,
        campaigns: listed.directory.campaigns,
      },
      callList: { ...listed.callList, compactCounts: reportingOutages(callListStore(background)).compactCounts },
      activity: { ...listed.activity, record: reportingOutages(activityStore(database)).record },
      dialing: reportingOutages(dialingStore(background, observers.onStopped)),
      retention: reportingOutages(retentionStore(background)),
      auditChain: reportingOutages(auditChainStore(background)),
      contacts: reportingOutages(contactStore(background)),
      protection: {
        ...reportingOutages(protectionStore(database)),
        listNumbers: listed.protection.listNumbers,
        searchNumbers: listed.protection.searchNumbers,
        importNumbers: sweptNumbers.importNumbers,
        blockDoNotCall: sweptNumbers.blockDoNotCall,
        makeHeldDue: sweptNumbers.makeHeldDue,
        deleteEnded: sweptNumbers.deleteEnded,
        countHeld: sweptNumbers.countHeld,
      },
      clock: reportingOutages(clockStore(background)),
    },
    throttle: reportingOutages(throttleStore(signIn)),
    imports: reportingOutages(importStore(background)),
    pools: listPools(database),
    stats: () => readDatabaseStats(background, freeBytes(location)),
    lastUsedLag: keyUse.lag,
    ...reportingOutages({ migrate: (signal?: AbortSignal) => migrate(database, signal), schema: () => schemaState(database) }),
    async isReady() {
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
    finishRefusals: refusals.finish,
    async close() {
      refusals.finish();
      await keyUse.close();
      await knownNumbers.close();
      await database.close();
    },
  };
}

/** Creates the stores whose statements go through the connections for the console's lists. */
function createStores(lists: Database) {
  return {
    apiKeys: reportingOutages(apiKeyStore(lists)),
    users: reportingOutages(userStore(lists)),
    tenancies: reportingOutages(tenancyStore(lists)),
    directory: reportingOutages(directoryStore(lists)),
    callList: reportingOutages(callListStore(lists)),
    activity: reportingOutages(activityStore(lists)),
    protection: reportingOutages(protectionStore(lists)),
  };
}

function listPools({ pools }: OpenedDatabase): Pool[] {
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
