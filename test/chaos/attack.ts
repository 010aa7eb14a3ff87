import { Console } from 'node:console';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { type DatabaseKind, databaseKinds } from '../support/databases.ts';
import { Ledger } from './ledger.ts';

/** The options of `npm run chaos`. Without them, this is `npm test -- --all`, which runs the short version. */
type Options = { quick?: boolean; only?: string; database?: string };
const options: Options | null = JSON.parse(process.env['CHAOS'] ?? 'null');
export const isQuick = options === null || options.quick === true;

export type Attack = {
  /** The name that `--only` takes. */
  name: string;
  /** Completes the title that all attacks have in common. */
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
export type Trial = {
  kind: DatabaseKind;
  ledger: Ledger;
  cleanup: AsyncDisposableStack;
  /** Passed to `skip` if the attack can't run here. */
  context: Mocha.Context;
};

/** In ms. On a very busy machine, even a short attack takes minutes, and a long one more than ten. */
const limit = isQuick ? 300_000 : 1_800_000;

/** Defines a test for each attack and database. */
export function describeAttacks(...attacks: readonly Attack[]): void {
  const chosen = attacks.flatMap((attack) => chooseDatabases(attack).map((kind) => ({ attack, kind })));
  if (chosen.length === 0) return;
  describe('no acknowledged call is lost, and no one is called twice or kept waiting, with', () => {
    for (const { attack, kind } of chosen) {
      it(`${attack.title}, on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, async function () {
        this.timeout(2 * limit).slow(60_000);
        const ledger = new Ledger();
        const startedAt = performance.now();
        await runAttack(attack, kind, ledger, this);
        const [counts, notes] = [ledger.count(), ledger.notes.join('; ')];
        if (options) output.log(`    ${notes}`);
        table[`${attack.name} on ${kind}`] = { ...counts, s: Math.round((performance.now() - startedAt) / 1_000) };
        // The short version shares the processors with other tests, so it only notes how long a response took.
        const ignored = isQuick ? ['sent', 'acknowledged', 'late'] : ['sent', 'acknowledged'];
        const faults = Object.entries(counts).filter(([column, count]) => count !== 0 && !ignored.includes(column));
        expect(Object.fromEntries(faults), notes).to.deep.equal({});
      });
    }
  });
}

function chooseDatabases({ name, databases = databaseKinds, quickOn = databases[0] }: Attack): DatabaseKind[] {
  if (options?.only?.split(',').includes(name) === false) return [];
  return databases.filter((kind) => (!isQuick || kind === quickOn) && (options?.database ?? kind) === kind);
}

/** Runs an attack until it ends or its time is up, and leaves nothing behind. */
async function runAttack({ run }: Attack, kind: DatabaseKind, ledger: Ledger, context: Mocha.Context): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const tooLong = pause(limit, undefined, { ref: false }).then(() => Promise.reject(new Error(`it took longer than ${limit} ms`)));
  try {
    await Promise.race([run({ kind, ledger, cleanup, context }), tooLong]);
  } catch (error) {
    if (context.test?.isPending()) throw error;
    ledger.fail(`it ended early: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The results of the attacks. `npm run chaos` prints this table at the end. */
const table: Record<string, object> = {};
const output = new Console(process.stdout);
if (options) process.once('exit', () => output.table(table));
