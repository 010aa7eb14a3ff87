import { isOpen, type Model } from './model.ts';
import type { Seen, World } from './world.ts';

/** In ms. Dialers and housekeeping usually need a few milliseconds, but a busy machine may need seconds. */
const patience = 20_000;
/** In ms. A dialer that couldn't store a result tries again sooner. */
const quiet = 40;

/**
 * Waits until the cores have done what one of the models says.
 *
 * @param models the model after each possible order of what happened at the same time
 * @param options.mayLoseCalls whether a core may have lost the calls that it was handing off. They count as lost if nothing happens for a while
 * @returns the model that the cores agree with
 */
export async function settle(
  world: World,
  models: readonly Model[],
  { withErased = false, mayLoseCalls = false }: { withErased?: boolean; mayLoseCalls?: boolean } = {},
): Promise<Model> {
  const deadline = performance.now() + patience;
  let quietSince = Number.POSITIVE_INFINITY;
  for (let round = 0; ; round++) {
    const isQuiet = await world.rest();
    const now = performance.now();
    const seen = await world.look(models, withErased).catch((error: unknown) => {
      if (now > deadline) throw error;
    });
    // If a fault has ended connections between nodes, a node notices that only when it uses one.
    if (!seen) continue;
    const known = mayLoseCalls ? models.map((model) => withLostCalls(model, seen)) : models;
    const differences = known.map((model) => findDifference(model, seen));
    const found = known[differences.indexOf(null)];
    if (!found || !isQuiet) quietSince = Number.POSITIVE_INFINITY;
    else quietSince = Math.min(quietSince, now);
    if (found && (!mayLoseCalls || now - quietSince >= quiet)) {
      for (const call of found.calls.values()) if (!isOpen(call)) world.compared.add(call);
      return found;
    }
    if (now > deadline) throw new Error([...new Set(differences)].join('\nor '));
    if (round % 8 === 7) world.wake();
  }
}

/** Returns a copy of the model in which a killed dialer has lost its calls: those that only the database still shows as being handed off. */
function withLostCalls(model: Model, { calls, handoffs }: Seen): Model {
  const copy = model.clone();
  for (const call of copy.calls.values())
    if (call.stage !== 'open' && calls.get(call.id)?.startsWith('open')) copy.lose(call, handoffs.get(call.id) ?? 0);
  return copy;
}

function findDifference(model: Model, { calls, open, erased, handoffs, compared }: Seen): string | null {
  let waiting = 0;
  let erasedCalls = 0;
  for (const call of model.calls.values()) {
    const { id, requestId, isErased } = call;
    const asked = handoffs.get(id) ?? 0;
    if (asked !== call.handoffs) return `${requestId} (${id}) should have been handed off ${call.handoffs} times, but was ${asked} times`;
    if (isErased) erasedCalls++;
    if (isOpen(call)) waiting++;
    const expected = `${call.stage} at ${isOpen(call) ? call.dueAt : call.endedAt}`;
    if (!compared.has(call) && calls.get(id) !== expected) return `${requestId} (${id}) should be ${expected}, but is ${calls.get(id)}`;
  }
  if (waiting !== open) return `${open} calls should be ${waiting}`;
  if (erased !== null && erased !== erasedCalls) return `the data of ${erasedCalls} calls should have been erased, but it was of ${erased}`;
  return null;
}
