import { setTimeout as pause } from 'node:timers/promises';
import { wakeDialers } from './faults.ts';
import type { Model } from './model.ts';
import type { World } from './world.ts';

/** In ms. Dialers and housekeeping usually need a few milliseconds, but a busy machine may need seconds. */
const patience = 20_000;
/**
 * In ms. After this much time without any activity, no dialer still has a result to store: one that couldn't store it tries again sooner.
 */
const quiet = 40;

type Seen = Awaited<ReturnType<World['look']>>;

/**
 * Waits until the cores have done what one of the models says.
 *
 * @param models the model after each possible order of what happened at the same time
 * @param mayLoseCalls whether a core may have lost the calls that it was handing off. They count as lost if nothing happens for a while
 * @returns the model that the cores agree with
 */
export async function settle(world: World, models: readonly Model[], mayLoseCalls = false): Promise<Model> {
  const deadline = performance.now() + patience;
  let quietSince = Number.POSITIVE_INFINITY;
  for (let round = 0; ; round++) {
    const isQuiet = await world.rest();
    const now = performance.now();
    const seen = await world.look().catch((error: unknown) => {
      if (now > deadline) throw error;
    });
    // The query failed: a fault may have ended connections between nodes, and a node notices that only when it uses one. So this tries
    // again.
    if (!seen) continue;
    const known = (mayLoseCalls ? models.map((model) => withLostCalls(model, seen)) : models).map((model) =>
      model.isRationing ? model.clone() : model,
    );
    const differences = known.map((model) => model.follow(seen.calls, seen.handoffs) ?? findDifference(model, seen));
    const found = known[differences.indexOf(null)];
    quietSince = found && isQuiet ? Math.min(quietSince, now) : Number.POSITIVE_INFINITY;
    // Under a pace, the cores may still choose another call, so the next command must wait.
    if (found && (!(mayLoseCalls || found.isRationing) || now - quietSince >= quiet)) return found;
    if (now > deadline) throw new Error([...new Set(differences)].join('\nor '));
    if (quietSince < now) await pause(quiet / 2);
    else if (quietSince === now || round % 8 === 7) {
      wakeDialers();
      // While dialing is stopped, only this lapses calls.
      world.sweepEachMinute();
    }
  }
}

/**
 * Returns a copy of the model in which a killed dialer has lost its calls: those that are still being handed off according to the database,
 * but not according to the model.
 */
function withLostCalls(model: Model, { calls, handoffs }: Seen): Model {
  const copy = model.clone();
  for (const call of copy.calls.values())
    if (call.stage !== 'open' && calls.get(call.id)?.startsWith('open')) copy.lose(call, handoffs.get(call.id) ?? 0);
  return copy;
}

function findDifference(model: Model, seen: Seen): string | null {
  for (const { id, requestId, stage, dueAt, endedAt, answeredBy, isErased, handoffs } of model.calls.values()) {
    const [asked, actual] = [seen.handoffs.get(id) ?? 0, seen.calls.get(id)];
    if (asked !== handoffs) return `${requestId} (${id}) should have been handed off ${handoffs} times, but was ${asked} times`;
    const expected = `${stage} at ${endedAt ?? dueAt}${answeredBy ? ` by ${answeredBy}` : ''}${isErased ? ', erased' : ''}`;
    if (actual !== expected) return `${requestId} (${id}) should be ${expected}, but is ${actual}`;
  }
  for (const { id, name, listed } of model.directory.values()) {
    const numbers = seen.listed.get(id) ?? 0;
    if (numbers !== listed.size) return `${numbers} numbers on the list of ${name} should be ${listed.size}`;
  }
  return seen.calls.size === model.calls.size ? null : `${seen.calls.size} calls should be ${model.calls.size}`;
}
