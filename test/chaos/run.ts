import { setTimeout as pause } from 'node:timers/promises';
import { type DatabaseKind, databaseKinds } from '../support/databases.ts';
import { Skipped, stopAndCompare, type Trial } from './environment.ts';
import { type Counts, createLedger } from './ledger.ts';

export type Case = {
  name: string;
  /** Names the attack in the test report. */
  title: string;
  databases?: readonly DatabaseKind[];
  /** The databases of the short version, if it doesn't run on all: other tests cover the rule there, or it would take too long. */
  quickDatabases?: readonly DatabaseKind[];
  attack(trial: Trial): Promise<void>;
};

/** `counts` is null if the attack was skipped; the note says why. */
export type Row = { name: string; kind: DatabaseKind; seconds: number; counts: Counts | null; notes: string[] };
type Options = { isQuick: boolean; calls?: number };
type Attack = { one: Case; kind: DatabaseKind };

export function listAttacks(cases: readonly Case[], kinds: readonly DatabaseKind[], isQuick: boolean): Attack[] {
  return cases.flatMap((one) => {
    const { databases = databaseKinds, quickDatabases = databases } = one;
    return (isQuick ? quickDatabases : databases).filter((kind) => kinds.includes(kind)).map((kind) => ({ one, kind }));
  });
}

/**
 * Short attacks mostly wait, so two run at the same time; full ones have the machine to themselves.
 *
 * @returns `runAttack`, which starts an attack and the next ones and waits for it; and `ended`, which waits for all that were started
 */
export function begin(attacks: readonly Attack[], options: Options) {
  const begun = new Map<Attack, Promise<Row>>();
  const runAttack = (attack: Attack): Promise<Row> => {
    const first = attacks.indexOf(attack);
    for (const next of attacks.slice(first, first + (options.isQuick ? 2 : 1)))
      if (!begun.has(next)) begun.set(next, runCase(next.one, next.kind, options));
    return begun.get(attack) ?? runCase(attack.one, attack.kind, options);
  };
  return { rowOf: runAttack, ended: () => Promise.allSettled(begun.values()) };
}

/** Runs a case until it ends or its time is up, and leaves nothing behind. */
async function runCase({ name, attack }: Case, kind: DatabaseKind, { isQuick, calls }: Options): Promise<Row> {
  const ledger = createLedger();
  const cleanup = new AsyncDisposableStack();
  const trial: Trial = { kind, isQuick, calls: (quick, whole) => calls ?? (isQuick ? quick : whole), ledger, cleanup, scene: null };
  const limit = isQuick ? 90 : 300;
  const startedAt = performance.now();
  const row = () => ({ name, kind, seconds: Math.round((performance.now() - startedAt) / 1_000) });
  try {
    const tooLong = pause(limit * 1_000, undefined, { ref: false }).then(() => Promise.reject(new Error(`it took longer than ${limit} s`)));
    await Promise.race([attack(trial), tooLong]);
  } catch (error) {
    if (error instanceof Skipped) return { ...row(), counts: null, notes: [error.message] };
    ledger.fail(`the case ended early: ${error instanceof Error ? error.message : String(error)}`);
    if (trial.scene) await stopAndCompare(trial.scene, 'SIGKILL').catch((cause) => ledger.note(`and could not be compared: ${cause}`));
  } finally {
    await ledger.close();
    await cleanup.disposeAsync();
  }
  return { ...row(), counts: ledger.counts(trial.scene?.provider), notes: ledger.notes() };
}

/** The columns that should be 0 but aren't. */
export function listFaults({ counts }: Row): string[] {
  const { sent: _, acknowledged: __, ...zeros } = counts ?? { sent: 0, acknowledged: 0 };
  return Object.entries(zeros).flatMap(([column, count]) => (count === 0 ? [] : [`${column} ${count}`]));
}

/** The result of one case. */
export function formatRow(row: Row): string {
  const { name, kind, counts, notes, seconds } = row;
  if (counts === null) return `${name} on ${kind}: skipped, ${notes.join()}`;
  const verdict = listFaults(row).join(', ').toUpperCase() || 'all zero';
  return `${name} on ${kind}: ${counts.sent} sent, ${counts.acknowledged} acknowledged, ${verdict} (${seconds} s; ${notes.join('; ')})`;
}
