import { type DatabaseKind, databaseKinds } from '../support/databases.ts';
import { Skipped, stopAndCompare, type Trial } from './environment.ts';
import { type Counts, createLedger } from './ledger.ts';

export type Case = {
  name: string;
  /** Names the attack in the table. */
  title: string;
  databases?: readonly DatabaseKind[];
  /** Those of the short version, where that is fewer or none: other tests have the same rule on the others, or it takes too long. */
  quickDatabases?: readonly DatabaseKind[];
  attack(trial: Trial): Promise<void>;
};

export type Row = { name: string; kind: DatabaseKind; seconds: number } & ({ counts: Counts; notes: string[] } | { skipped: string });
export type Options = { isQuick: boolean; calls?: number };

type Attack = { one: Case; kind: DatabaseKind };

export function attacksOf(cases: readonly Case[], kinds: readonly DatabaseKind[], isQuick: boolean): Attack[] {
  const databasesOf = ({ databases = databaseKinds, quickDatabases = databases }: Case) => (isQuick ? quickDatabases : databases);
  return cases.flatMap((one) =>
    databasesOf(one)
      .filter((kind) => kinds.includes(kind))
      .map((kind) => ({ one, kind })),
  );
}

/**
 * Short attacks mostly wait, so two run at once; whole ones have the machine to themselves.
 *
 * @returns `rowOf`, which waits for one attack, and begins it and the next ones; and `ended`, which waits for all that were begun
 */
export function begin(attacks: readonly Attack[], options: Options) {
  const begun = new Map<Attack, Promise<Row>>();
  const rowOf = (attack: Attack): Promise<Row> => {
    const first = attacks.indexOf(attack);
    for (const next of attacks.slice(first, first + (options.isQuick ? 2 : 1)))
      if (!begun.has(next)) begun.set(next, runCase(next.one, next.kind, options));
    return begun.get(attack) ?? runCase(attack.one, attack.kind, options);
  };
  return { rowOf, ended: () => Promise.allSettled(begun.values()) };
}

/** Runs a case to its end or to its limit, and leaves nothing behind. */
async function runCase(one: Case, kind: DatabaseKind, options: Options): Promise<Row> {
  const { isQuick } = options;
  const ledger = createLedger();
  const cleanup = new AsyncDisposableStack();
  const calls = (quick: number, whole: number) => options.calls ?? (isQuick ? quick : whole);
  const trial: Trial = { kind, isQuick, calls, ledger, cleanup, scene: null };
  const startedAt = performance.now();
  const ending = () => ({ name: one.name, kind, seconds: Math.round((performance.now() - startedAt) / 1_000) });
  try {
    await within(isQuick ? 90_000 : 300_000, one.attack(trial));
  } catch (error) {
    if (error instanceof Skipped) return { ...ending(), skipped: error.message };
    ledger.fail(`the case ended early: ${error instanceof Error ? error.message : String(error)}`);
    if (trial.scene) await stopAndCompare(trial.scene, 'SIGKILL').catch((cause) => ledger.note(`and could not be compared: ${cause}`));
  } finally {
    await ledger.close();
    await cleanup.disposeAsync();
  }
  return { ...ending(), counts: ledger.counts(trial.scene?.provider.calls ?? null), notes: ledger.notes() };
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${ms / 1_000} s`)), ms);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    // What goes wrong after the limit, because everything is being taken away, is of no interest.
    work.catch(() => undefined);
  }
}

/** The columns that must be 0, and are not. */
export function faultsOf(row: Row): string[] {
  if ('skipped' in row) return [];
  const { sent: _, acknowledged: __, ...zeros } = row.counts;
  return Object.entries(zeros).flatMap(([column, count]) => (count === 0 ? [] : [`${column} ${count}`]));
}
