import { setTimeout as pause } from 'node:timers/promises';
import { type Call, isOpen, type Model } from './model.ts';
import type { World } from './world.ts';

/** In ms. Dialers and housekeeping usually need a few milliseconds, but a busy machine may need seconds. */
const patience = 20_000;

export type Settling = {
  withErased?: boolean;
  /** In ms. Set if a core may have lost the calls that it was handing off: they count as lost if nothing happens for this long. */
  quietFor?: number;
};

/**
 * Waits until the cores have done what one of the models says.
 *
 * @param models after any order of what happened at the same time
 * @returns the model that the cores agree with
 */
export async function settle(world: World, models: readonly Model[], { withErased = false, quietFor = 0 }: Settling = {}): Promise<Model> {
  const deadline = performance.now() + patience;
  let quietSince = performance.now();
  for (let round = 0; ; round++) {
    const now = performance.now();
    const isOver = now > deadline;
    // Asking the provider costs nothing, unlike the database.
    const likely = models.filter((model) => isOver || quietFor > 0 || findWrongHandoff(model, world) === null);
    if (likely.length > 0) {
      const { open, erased } = await world.look(withErased);
      const known = quietFor > 0 ? likely.map((model) => withLostCalls(model, world, open)) : likely;
      const differences = known.map((model) => findWrongHandoff(model, world) ?? findDifference(model, open, erased));
      const agreeing = known.filter((_, n) => differences[n] === null);
      const found = await findSameEnds(world, agreeing);
      if (!found || world.isBusy) quietSince = now;
      if (found && now - quietSince >= quietFor) return found;
      if (isOver) throw new Error([...new Set(differences)].map((one) => one ?? 'A call ended differently.').join('\nor '));
    }
    // Usually, the dialers are already at work.
    if (round % 16 === 7) world.wake();
    await pause(round > 50 || quietFor > 0 ? 20 : 1);
  }
}

/** Returns a copy of the model in which a killed dialer has lost its calls: those that only the database still shows as being handed off. */
function withLostCalls(model: Model, world: World, open: ReadonlyMap<string, string>): Model {
  const copy = model.clone();
  for (const call of copy.calls.values())
    if (call.stage !== 'open' && open.get(call.id)?.startsWith('open')) copy.lose(call, world.handoffs.get(call.id) ?? 0);
  return copy;
}

/** Returns a model that says of each call how and when it ended. Each end is compared only once. */
async function findSameEnds(world: World, models: readonly Model[]): Promise<Model | undefined> {
  const { compared } = world;
  const endsOf = (model: Model) => [...model.calls.values()].filter((call) => !isOpen(call) && !compared.has(toEnd(call)));
  const ended = models.flatMap(endsOf);
  const read = ended.length === 0 ? new Set() : await world.readEnds(ended);
  const found = models.find((model) => endsOf(model).every((call) => read.has(toEnd(call))));
  for (const call of found ? endsOf(found) : []) compared.add(toEnd(call));
  return found;
}

const toEnd = ({ id, stage, endedAt }: Call) => `${id} ${stage} ${endedAt}`;

function findWrongHandoff(model: Model, world: World): string | null {
  for (const { id, requestId, handoffs } of model.calls.values()) {
    const asked = world.handoffs.get(id) ?? 0;
    if (asked !== handoffs) return `${requestId} (${id}) should have been handed off ${handoffs} times, but was ${asked} times`;
  }
  return null;
}

function findDifference(model: Model, open: ReadonlyMap<string, string>, erased: number | null): string | null {
  let waiting = 0;
  let erasedCalls = 0;
  for (const call of model.calls.values()) {
    const { id, requestId, stage, isErased, dueAt } = call;
    const [found, wanted] = [open.get(id), isOpen(call) ? `${stage} until ${dueAt}` : undefined];
    if (isOpen(call)) waiting++;
    if (isErased) erasedCalls++;
    if (found !== wanted) return `${requestId} (${id}) should be ${wanted ?? stage}, but is ${found ?? 'over'}`;
  }
  if (waiting !== open.size) return `${open.size} calls should be ${waiting}`;
  if (erased !== null && erased !== erasedCalls) return `the data of ${erasedCalls} calls should have been erased, but it was of ${erased}`;
  return null;
}
