import { setTimeout as pause } from 'node:timers/promises';
import { type DatabaseKind, databaseKinds } from '../support/databases.ts';
import { Skipped, type Trial } from './environment.ts';
import { type Counts, createLedger } from './ledger.ts';

export type Case = {
  name: string;
  /** Names the attack in the test report. */
  title: string;
  databases?: readonly DatabaseKind[];
  /** The only database of the short version, by default the first; null if other tests cover the rule, or if it would take too long. */
  quickOn?: DatabaseKind | null;
  attack(trial: Trial): Promise<void>;
};

/** `counts` is null if the attack was skipped; the note says why. */
export type Row = { name: string; kind: DatabaseKind; seconds: number; counts: Counts | null; notes: string[] };
type Attack = { one: Case; kind: DatabaseKind };

export function listAttacks(cases: readonly Case[], kinds: readonly DatabaseKind[], isQuick: boolean): Attack[] {
  return cases.flatMap((one) => {
    const { databases = databaseKinds, quickOn = databases[0] } = one;
    const chosen = isQuick ? databases.filter((kind) => kind === quickOn) : databases;
    return chosen.filter((kind) => kinds.includes(kind)).map((kind) => ({ one, kind }));
  });
}

/**
 * Short attacks mostly wait, so two run at the same time; full ones have the machine to themselves.
 *
 * @returns `startRow`, which starts an attack and the next ones and waits for it; and `ended`, which waits for all that were started
 */
export function begin(attacks: readonly Attack[], isQuick: boolean) {
  const begun = new Map<Attack, Promise<Row>>();
  const startRow = (attack: Attack): Promise<Row> => {
    const first = attacks.indexOf(attack);
    for (const next of attacks.slice(first, first + (isQuick ? 2 : 1))) if (!begun.has(next)) begun.set(next, runCase(next, isQuick));
    return begun.get(attack) ?? runCase(attack, isQuick);
  };
  return { startRow, ended: () => Promise.allSettled(begun.values()) };
}

/** Runs a case until it ends or its time is up, and leaves nothing behind. */
async function runCase({ one: { name, attack }, kind }: Attack, isQuick: boolean): Promise<Row> {
  const ledger = createLedger();
  const cleanup = new AsyncDisposableStack();
  const trial: Trial = { kind, isQuick, ledger, cleanup, abandon: async () => undefined };
  const limit = isQuick ? 90 : 300;
  const startedAt = performance.now();
  let skipped: string | undefined;
  try {
    const tooLong = pause(limit * 1_000, undefined, { ref: false }).then(() => Promise.reject(new Error(`it took longer than ${limit} s`)));
    await Promise.race([attack(trial), tooLong]);
  } catch (error) {
    if (error instanceof Skipped) skipped = error.message;
    else {
      ledger.fail(`the case ended early: ${error instanceof Error ? error.message : String(error)}`);
      await trial.abandon().catch((cause) => ledger.note(`and could not be compared: ${cause}`));
    }
  } finally {
    await ledger.close();
    await cleanup.disposeAsync();
  }
  const row = { name, kind, seconds: Math.round((performance.now() - startedAt) / 1_000) };
  return skipped === undefined ? { ...row, counts: ledger.counts(), notes: ledger.notes() } : { ...row, counts: null, notes: [skipped] };
}

/** Returns the columns that should be 0 but aren't. */
export function listFaults({ counts }: Row): string[] {
  const { sent: _, acknowledged: __, ...zeros } = counts ?? { sent: 0, acknowledged: 0 };
  return Object.entries(zeros).flatMap(([column, count]) => (count === 0 ? [] : [`${column} ${count}`]));
}

/** Returns the result of one case. */
export function formatRow(row: Row): string {
  const { name, kind, counts, notes, seconds } = row;
  if (counts === null) return `${name} on ${kind}: skipped, ${notes.join()}`;
  const verdict = listFaults(row).join(', ').toUpperCase() || 'all zero';
  return `${name} on ${kind}: ${counts.sent} sent, ${counts.acknowledged} acknowledged, ${verdict} (${seconds} s; ${notes.join('; ')})`;
}
