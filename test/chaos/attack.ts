import { Console } from 'node:console';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { type DatabaseKind, databaseKinds } from '../support/databases.ts';
import { skip } from '../support/skip.ts';
import { createLedger, type Ledger } from './ledger.ts';

/** The options of `npm run chaos`. Without them, this is `npm test`, which runs the short version. */
type Options = { quick?: boolean; only?: string[]; database?: string };
const options: Options | null = JSON.parse(process.env['CHAOS'] ?? 'null');
export const isQuick = options?.quick ?? true;

export type Attack = {
  /** For `--only`. */
  name: string;
  /** Continues the title of all attacks. */
  title: string;
  databases?: readonly DatabaseKind[];
  /**
   * The database for the short version, by default the first one. Null if `npm test` skips the attack, because other tests cover the rule
   * or it takes too long.
   */
  quickOn?: DatabaseKind | null;
  run(trial: Trial): Promise<void>;
};

/** One attack on one database. An attack adds everything that it opens to `cleanup`. */
export type Trial = { kind: DatabaseKind; ledger: Ledger; cleanup: AsyncDisposableStack };

/** A reason why an attack can't run here. */
export class Skipped extends Error {}

/** Calls `end` after the attack, or when this process exits early, to end something that would outlive the process. */
export function endLater({ cleanup }: Trial, end: () => void): void {
  ends.add(end);
  cleanup.defer(() => {
    ends.delete(end);
    end();
  });
}

const ends = new Set<() => void>();
process.once('exit', () => {
  for (const end of ends) end();
});

/** Defines a test for each attack and database. */
export function describeAttacks(...attacks: readonly Attack[]): void {
  const chosen = attacks.flatMap((attack) => chooseDatabases(attack).map((kind) => ({ attack, kind })));
  if (chosen.length === 0) return;
  describe('no acknowledged call is lost, and no one is called twice or kept waiting, with', () => {
    for (const { attack, kind } of chosen) {
      it(`${attack.title}, on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, async function () {
        this.timeout(2 * limit).slow(60_000);
        const ledger = createLedger();
        const startedAt = performance.now();
        const reason = await runAttack(attack, kind, ledger);
        if (reason !== undefined) return skip(this, reason);
        const [counts, notes] = [ledger.counts(), ledger.notes().join('; ')];
        if (options) output.log(`    ${notes}`);
        table[`${attack.name} on ${kind}`] = { ...counts, s: Math.round((performance.now() - startedAt) / 1_000) };
        const { sent: _, acknowledged: __, ...faults } = counts;
        expect(Object.fromEntries(Object.entries(faults).filter(([, count]) => count !== 0)), notes).to.deep.equal({});
      });
    }
  });
}

function chooseDatabases({ name, databases = databaseKinds, quickOn = databases[0] }: Attack): DatabaseKind[] {
  if (options?.only?.includes(name) === false) return [];
  return databases.filter((kind) => (!isQuick || kind === quickOn) && (options?.database ?? kind) === kind);
}

/** In ms. On a very busy machine, even a short attack takes minutes. */
const limit = 300_000;

/** Runs an attack until it ends or its time is up, and leaves nothing behind. @returns a reason if it can't run here */
async function runAttack({ run }: Attack, kind: DatabaseKind, ledger: Ledger): Promise<string | undefined> {
  await using cleanup = new AsyncDisposableStack();
  const tooLong = pause(limit, undefined, { ref: false }).then(() => Promise.reject(new Error(`it took longer than ${limit} ms`)));
  try {
    await Promise.race([run({ kind, ledger, cleanup }), tooLong]);
  } catch (error) {
    if (error instanceof Skipped) return error.message;
    ledger.fail(`it ended early: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await ledger.close();
  }
  return undefined;
}

/** The results of the attacks. `npm run chaos` prints this table at the end. */
const table: Record<string, object> = {};
const output = new Console(process.stdout);
if (options) process.once('exit', () => output.table(table));
