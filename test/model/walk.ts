import { inspect } from 'node:util';
import { listCommands, type Walk } from './commands.ts';
import { compareLists } from './lists.ts';
import { Model } from './model.ts';
import { enter, listViewers } from './requests.ts';
import { type WalkKind, World } from './world.ts';

/** In ms. How long to look for a shorter series of commands that also fails. */
const shortensFor = 60_000;
/** Long ago, so that years can pass before the walk's clock is ahead of PostgreSQL's own clock. */
const startOfTime = Date.parse('2021-12-01T12:00:00Z');

type Options = {
  kind: WalkKind;
  seed: number;
  commands: number;
  /** The numbers of the only commands to run, as a failed walk prints them. */
  only?: readonly number[] | undefined;
  /** Is called with what each command did. */
  trace?: ((line: string) => void) | undefined;
};
/** Why a walk failed, the numbers of the commands that ran, and what they did. */
type Failure = { reason: string; numbers: readonly number[]; lines: readonly string[] };

/**
 * Walks with a new database. What a command chooses depends only on the seed, its number, the kind of database and the model. So another
 * process repeats it, unless the model depends on what the cores did first.
 *
 * @throws Error with the shortest failing commands, and how to repeat them
 */
export async function walk({ kind, seed, commands, only, trace }: Options): Promise<void> {
  const all = listCommands(seed, commands);
  const attempt = async (chosen: Iterable<number>, say: Options['trace'] = undefined): Promise<Failure | null> => {
    const state: Walk = { model: Object.assign(new Model(), { now: startOfTime }), done: [], isSure: true };
    const [numbers, lines, withoutIds]: [number[], string[], ReturnType<typeof idReplacer>] = [[], [], idReplacer()];
    const note = () => {
      const line = withoutIds(`  ${numbers.at(-1)} ${state.done.join(', ')}`);
      lines.push(line);
      say?.(line);
    };
    try {
      await using world = await World.open(kind, state.model);
      for (const number of chosen) {
        numbers.push(number);
        await all[number]?.(state, world).finally(note);
      }
      await compareEverything(state, world);
      return null;
    } catch (error) {
      return { reason: withoutIds(inspect(error)), numbers, lines };
    }
  };
  const first = await attempt(only ?? all.keys(), trace);
  if (!first) return;
  const { reason, numbers, lines } = only ? first : await shorten(first, attempt);
  const repeat = `npm run walk -- --database ${kind} --seed ${seed} --commands ${commands} --only=${numbers}`;
  throw new Error(`${reason}\n\nafter these of ${first.numbers.length} commands:\n${lines.join('\n')}\n\nRepeat it: ${repeat}`);
}

/** Looks for a shorter series of commands that also fails, by removing smaller and smaller parts. */
async function shorten(first: Failure, attempt: (numbers: readonly number[]) => Promise<Failure | null>): Promise<Failure> {
  const end = performance.now() + shortensFor;
  let shortest = first;
  for (let size = first.numbers.length; size > 0; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < shortest.numbers.length && performance.now() < end; ) {
      const left = shortest.numbers.toSpliced(from, size);
      const shorter = left.length > 0 && (await attempt(left));
      if (shorter) shortest = shorter;
      else from += size;
    }
  return shortest;
}

/** Replaces IDs, which differ in each walk, by numbers in the order in which they're mentioned. */
function idReplacer(): (text: string) => string {
  const known = new Map<string, string>();
  return (text) =>
    text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
      known.set(id, known.get(id) ?? `#${known.size + 1}`);
      return known.get(id) ?? id;
    });
}

async function compareEverything({ model, isSure }: Walk, world: World): Promise<void> {
  const compared = new Set<string>();
  for (const viewer of listViewers(model)) if (await enter(model, world, viewer, 1)) await compareLists(model, world, viewer, compared);
  const outcomes = await world.outcomes();
  if (isSure ? outcomes !== model.outcomes : outcomes > model.outcomes)
    throw new Error(`The metrics should count ${model.outcomes} outcomes, but count ${outcomes}.`);
  const faults = await world.auditFaults();
  if (faults.length > 0) throw new Error(`The audit chain is broken: ${faults.join(' ')}`);
}
