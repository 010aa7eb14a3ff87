import fc from 'fast-check';
import { day } from './basics.ts';
import { anyCommands, type Walk } from './commands.ts';
import { compareLists } from './lists.ts';
import { Model } from './model.ts';
import { enter, listViewers } from './requests.ts';
import { type WalkKind, World } from './world.ts';

/** In ms. How long to look for a shorter series of commands that also fails. */
const shrinksFor = 60_000;

type Options = {
  kind: WalkKind;
  seed: number;
  /** The maximum number of commands. */
  longest?: number;
  /** What a failed walk printed, to repeat its shortest failing commands. */
  path?: string | undefined;
  /** Stops the walk. */
  signal?: AbortSignal;
};

/** Walks with a new database. @returns how many commands @throws Error with the shortest failing commands, and how to repeat them */
export async function walk({ kind, seed, longest = 3_000, path, signal }: Options): Promise<number> {
  let steps = 0;
  let shrinkUntil = Number.POSITIVE_INFINITY;
  let lines: readonly string[] = [];
  const [shrinkPath, replayPath] = path?.split(',') ?? [];
  const property = fc.asyncProperty(fc.noBias(anyCommands(longest, replayPath)), async (chosen) => {
    if (performance.now() > shrinkUntil || signal?.aborted) return;
    const state: Walk = { model: Object.assign(new Model(), { now: startOfTime() }), lines: [], isSure: true, signal };
    try {
      await walkOnce(kind, chosen, state);
    } catch (error) {
      shrinkUntil = Math.min(shrinkUntil, performance.now() + shrinksFor);
      lines = state.lines;
      throw error;
    } finally {
      steps ||= state.lines.length;
    }
  });
  const result = await fc.check(property, { seed, numRuns: 1, ...(shrinkPath === undefined ? {} : { path: shrinkPath }) });
  if (result.failed && !signal?.aborted) throw new Error(`${describe(kind, result, lines)}\nIt was found after ${steps} commands.`);
  return steps;
}

/** Long ago, so that a year can pass before the walk's clock is ahead of PostgreSQL's own clock. */
const startOfTime = () => Math.floor((Date.now() - 5 * 365 * day) / day) * day + day / 2;

async function walkOnce(kind: WalkKind, commands: Iterable<fc.AsyncCommand<Walk, World>>, state: Walk): Promise<void> {
  const world = await World.open(kind, state.model);
  try {
    await fc.asyncModelRun(() => ({ model: state, real: world }), commands);
    await compareEverything(state, world);
  } finally {
    await world.close();
  }
}

async function compareEverything(state: Walk, world: World): Promise<void> {
  const { model } = state;
  const compared = new Set<string>();
  for (const viewer of listViewers(model)) if (await enter(model, world, viewer, 1)) await compareLists(model, world, viewer, compared);
  const outcomes = await world.outcomes();
  if (state.isSure ? outcomes !== model.outcomes : outcomes > model.outcomes)
    throw new Error(`The metrics should count ${model.outcomes} outcomes, but count ${outcomes}.`);
  const faults = await world.auditFaults();
  if (faults.length > 0) throw new Error(`The audit chain is broken: ${faults.join(' ')}`);
}

/** @param lines what the last failing commands did */
function describe<Commands>(kind: WalkKind, result: fc.RunDetails<Commands>, lines: readonly string[]): string {
  const { seed, counterexample, counterexamplePath, errorInstance, numShrinks } = result;
  const reason = errorInstance instanceof Error ? errorInstance.stack : String(errorInstance);
  const [, replayPath] = /replayPath="([^"]*)"/.exec(String(counterexample)) ?? [];
  const repeat = `npm run walk -- --database ${kind} --seed ${seed} --path ${counterexamplePath},${replayPath}`;
  return `${reason}\n\nafter these commands (shrunk ${numShrinks} times):\n${lines.join('\n')}\n\nRepeat it: ${repeat}`;
}
