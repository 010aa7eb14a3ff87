import type { Knex } from 'knex';
import type { ImportStore } from '../domain/import.ts';
import type { Clock, Stores, ThrottleStore } from '../domain/ports.ts';
import { apiKeyStore } from './api-keys.ts';
import { activityStore } from './audit.ts';
import { callListStore } from './call-list.ts';
import { callStore, type ObserveBatch } from './calls.ts';
import type { Database, DatabaseLocation } from './database.ts';
import { dialingStore } from './dialing.ts';
import { reportingOutages } from './errors.ts';
import { importStore } from './import.ts';
import { lastUsedOf } from './last-used.ts';
import { isMigrated, migrate, type SchemaState, schemaState } from './migrations/index.ts';
import { openDatabase } from './open.ts';
import { retentionStore } from './retention.ts';
import { sessionStore } from './sessions.ts';
import { tenancyStore } from './tenancies.ts';
import { throttleStore } from './throttle.ts';
import { userStore } from './users.ts';

/** A pool of connections by its name, and what is in use in it. */
export type Pool = { name: string; use: () => { used: number; free: number; waiting: number } };

/** What the rest of the process hears of. */
export type StorageObservers = {
  onBatch: ObserveBatch;
  /** A call was placed, and may be due. */
  onPlaced: () => void;
  onBackgroundError: (error: unknown) => void;
  /** A write would not be durable now. */
  onUnready: (error: unknown) => void;
};

/** For tools that only pass by. */
export const unobserved: StorageObservers = {
  onBatch: () => undefined,
  onPlaced: () => undefined,
  onBackgroundError: () => undefined,
  onUnready: () => undefined,
};

export type Storage = {
  database: Database;
  stores: Stores;
  throttle: ThrottleStore;
  imports: ImportStore;
  /** The pools of connections, for whoever watches them. */
  pools: readonly Pool[];
  /** Applies what is missing of the schema, unless told to give up. @returns the names of what was applied */
  migrate(signal?: AbortSignal): Promise<string[]>;
  /** What the database has of the schema. @throws Problem `conflict` when it is newer than this program */
  schema(): Promise<SchemaState>;
  /** Whether the database answers and its schema is complete. */
  isReady(): Promise<boolean>;
  close(): Promise<void>;
};

/** @param ifMissing what to do about a SQLite file that is not there */
export function openStorage(
  location: DatabaseLocation,
  clock: Clock,
  observers: StorageObservers,
  ifMissing: 'make' | 'refuse' = 'make',
): Storage {
  const database = openDatabase(location, ifMissing);
  const lastUsed = lastUsedOf(database, clock, observers.onBackgroundError);
  return {
    database,
    stores: {
      apiKeys: reportingOutages(apiKeyStore(database)),
      calls: reportingOutages(callStore(database, lastUsed, observers.onBatch, observers.onPlaced)),
      sessions: reportingOutages(sessionStore(database)),
      users: reportingOutages(userStore(database)),
      tenancies: reportingOutages(tenancyStore(database)),
      callList: reportingOutages(callListStore(database)),
      activity: reportingOutages(activityStore(database)),
      dialing: reportingOutages(dialingStore(database)),
      retention: reportingOutages(retentionStore(database)),
    },
    throttle: reportingOutages(throttleStore(database)),
    imports: reportingOutages(importStore(database)),
    pools: poolsOf(database),
    ...reportingOutages({ migrate: (signal?: AbortSignal) => migrate(database, signal), schema: () => schemaState(database) }),
    async isReady() {
      try {
        await database.checkWritable();
        return await isMigrated(database);
      } catch (error) {
        observers.onUnready(error);
        return false;
      }
    },
    async close() {
      await lastUsed.close();
      await database.close();
    },
  };
}

function poolsOf({ read, write }: Database): Pool[] {
  const poolOf = (name: string, { client }: Knex): Pool => ({
    name,
    use: () => ({ used: client.pool.numUsed(), free: client.pool.numFree(), waiting: client.pool.numPendingAcquires() }),
  });
  return read === write ? [poolOf('primary', write)] : [poolOf('read', read), poolOf('write', write)];
}
