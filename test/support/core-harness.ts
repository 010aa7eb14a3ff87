import { type CoreOptions, type RunningCore, startCoreHere } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { type DirectAccess, databaseWithTenants, openDirect, type Tenants } from './tenants.ts';

/** A core with two partners and their users. */
export type CoreHarness = {
  /** Its DATABASE_URL. */
  database: string;
  core: RunningCore;
  direct: DirectAccess;
  tenants: Tenants;
  close(): Promise<void>;
};

/** Starts a core within the test's process, on a separate database that has the tenants. */
export async function openCore({ kind = 'sqlite', ...options }: { kind?: DatabaseKind } & CoreOptions = {}): Promise<CoreHarness> {
  const { database, tenants } = await databaseWithTenants(kind);
  const core = await startCoreHere(database, options);
  const direct = await openDirect(database, options.clock);
  return {
    database,
    core,
    direct,
    tenants,
    async close() {
      await direct.close();
      await core.close();
    },
  };
}
