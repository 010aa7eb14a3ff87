import { partialDeepStrictEqual } from 'node:assert';
import fc from 'fast-check';
import { type Answer, readCode, untilServed } from '../support/http.ts';
import { until } from '../support/until.ts';
import { day, type Expected, hour, minute, Refused, second } from './basics.ts';
import { wakeDialers } from './faults.ts';
import { compareLists } from './lists.ts';
import { isOpen, type Model, zones } from './model.ts';
import {
  anyChoice,
  anyRequest,
  type Choice,
  type CommandName,
  commandNames,
  enter,
  listNodes,
  Nothing,
  type Planned,
  pick,
  pickViewer,
  placeLater,
  prepare,
  type Request,
} from './requests.ts';
import { settle } from './settle.ts';
import type { Fault, World } from './world.ts';

/** After concurrent requests, `model` is replaced by the one for the order in which they happened. */
export type Walk = {
  model: Model;
  /** What the current command has done so far. */
  done: string[];
  /**
   * Whether the cores' metrics must count every outcome. After a fault other than a move of the clock, they may miss one: a core may have
   * stored it without learning that it did.
   */
  isSure: boolean;
};

export type Command = (walk: Walk, world: World) => Promise<void>;
type Run = (walk: Walk, world: World, choice: Choice, planned: readonly Planned[]) => Promise<unknown>;

/** @param weight the number of times per thousand commands that this command is chosen @param requests the requests that it may send */
function command(weight: number, run: Run, requests: fc.Arbitrary<readonly Planned[]> = fc.constant([])) {
  const toCommand =
    ([choice, planned]: [Choice, readonly Planned[]]): Command =>
    async (walk, world) => {
      walk.done = [];
      await run(walk, world, choice, planned).catch(skip);
      if (walk.done.length === 0) walk.done.push('nothing to do');
    };
  return { weight, arbitrary: fc.tuple(anyChoice, requests).map(toCommand) };
}

/** Skips a command, or one of its requests, if the model doesn't yet have what it needs, such as a call to cancel. */
function skip(error: unknown): undefined {
  if (!(error instanceof Nothing)) throw error;
}

// Requests

type Pair = { request: Request; answer: Answer };

/** What another transaction has locked while requests begin: the tables, or the request IDs of the calls that they place. */
type Lock = 'nothing' | 'tables' | 'places';

/** Sends requests concurrently. */
async function perform(walk: Walk, world: World, requests: readonly Request[], locked: Lock = 'nothing'): Promise<void> {
  const send = () => requests.map(async (request): Promise<Pair> => ({ request, answer: await untilServed(() => request.send(world)) }));
  const places = locked === 'places' ? requests.flatMap((request) => (request.places ? [request.places] : [])) : undefined;
  const pairs = await (locked === 'nothing' ? Promise.all(send()) : world.whileLocked(send, places));
  const text = pairs.map(({ request, answer }) => `${request.text} → ${answer.status}`).join(', ');
  walk.done.push(`${pairs.length > 1 ? `concurrently, ${locked} locked: ` : ''}${text}`);
  walk.model = await settle(world, listPossibleModels([walk.model], pairs, text));
}

/**
 * Returns every model that the requests can lead to, in any order of them that explains all responses.
 *
 * @param starts the possible models before the requests. This function changes them
 */
function listPossibleModels(starts: readonly Model[], pairs: readonly Pair[], text: string): Model[] {
  const wrong = new Set<string>();
  const models = starts.flatMap((start) => [...possibleModels(start, pairs, wrong)]);
  if (models.length === 0) throw new Error(`${text}\n${[...wrong].join('\nor ')}`);
  return models;
}

/** Yields the model after each order of the requests that explains their responses. The dialers may run after any of the requests. */
function* possibleModels(model: Model, pairs: readonly Pair[], wrong: Set<string>, isRace = pairs.length > 1): Generator<Model> {
  if (pairs.length === 0) yield model;
  for (const [n, pair] of pairs.entries()) {
    const left = pairs.toSpliced(n, 1);
    // A change of a user is refused, and does nothing, if another one has changed that user since it was sent.
    if (isRace && pair.answer.status === 409 && pair.answer.text.includes('Someone else changed this user')) {
      yield* possibleModels(model.clone(), left, wrong, isRace);
      continue;
    }
    const next = n === pairs.length - 1 ? model : model.clone();
    const { quota, ...expected } = expect(next, pair);
    // If one statement places two calls, both responses say what's left of the key's daily limit after both. Whether the key has a limit
    // still shows whether the call was placed before one was set, which doesn't count it.
    const isLimited = (pair.answer.headers['ratelimit'] ?? null) !== null;
    const shown = quota === undefined ? {} : isRace ? ((quota !== null) === isLimited ? {} : { quota }) : { quota };
    const mismatch = findMismatch({ ...expected, ...shown }, pair.answer);
    if (mismatch !== null) {
      wrong.add(`${pair.request.text}: ${mismatch}`);
      continue;
    }
    if (left.length > 0) yield* possibleModels(next.clone(), left, wrong, isRace);
    next.dial();
    yield* possibleModels(next, left, wrong, isRace);
  }
}

function expect(model: Model, { request, answer }: Pair): Expected {
  try {
    return request.expect(model, answer);
  } catch (error) {
    if (error instanceof Refused) return error.expected;
    throw error;
  }
}

function findMismatch(expected: Expected, answer: Answer): string | null {
  const { status, text, headers, json } = answer;
  const [replayed, quota] = [headers['idempotent-replayed'] === 'true', headers['ratelimit'] ?? null];
  const got = { status, text, code: readCode(answer), replayed, quota };
  try {
    partialDeepStrictEqual({ ...got, json }, expected);
    return null;
  } catch {
    return `expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
  }
}

/**
 * Commands whose responses show which of them was first. A race has at most one other command, because the order of two others would show
 * only much later.
 */
const visible: readonly CommandName[] = ['place', 'repeat', 'cancel', 'outcome', 'respond', 'revoke', 'deleteUser'];

/** Sends the requests concurrently, about the same key if there are several. */
function race(locked: Lock): Run {
  return async (walk, world, { key }, planned) => {
    const isRace = planned.length > 1;
    // Which calls leave under a pace shows only after a race, so its requests would have too many possible orders.
    const isTooOpen = isRace && walk.model.isRationing;
    const hidden = isTooOpen ? planned.slice(1) : planned.filter(({ name }) => !visible.includes(name)).slice(1);
    const requests: Request[] = [];
    for (const one of planned.filter((each) => !hidden.includes(each))) {
      const request = await prepare(one, walk.model, world, isRace ? { key } : {}).catch(skip);
      if (request) requests.push(request);
    }
    if (requests.length === 0) throw new Nothing();
    await perform(walk, world, requests, locked);
  };
}

/**
 * Requests whose result is certain. A client that hangs up may still place a call, a used code may or may not be refused, and nothing shows
 * whether a call left before or after another request set a pace, which only counts the calls after that.
 */
const anyClear = anyRequest(commandNames.filter((name) => !['hangUp', 'changeFactor', 'setPace'].includes(name)));
/**
 * Commands that change whether a call may be placed. If one of them runs while a request to place a call is in progress, the checks that
 * this request has already passed are outdated.
 */
const interruptions: readonly CommandName[] = ['revoke', 'limitKey', 'deleteUser', 'disableUser', 'moveUser', 'listNumber', 'setHours'];

// Faults

/** The commands that a client may repeat if it doesn't know their result. */
const repeatable: readonly CommandName[] = [
  ...(['place', 'repeat', 'cancel', 'outcome', 'revoke', 'deleteUser', 'disableUser', 'moveUser', 'limitKey'] as const),
  ...(['setHours', 'setNumbers', 'stop', 'resume', 'setPace', 'setContactLimits'] as const),
];

/**
 * Sends a request during a fault, and repeats the request if its result is unknown. A call that got a 503 hasn't been placed or cancelled.
 *
 * @param until the walk's time afterwards: the fault may be a move of the clock
 */
async function performDuring(
  walk: Walk,
  world: World,
  request: Request,
  { fault, core, after, until = walk.model.now }: { fault: Fault; core: number; after: number; until?: number },
): Promise<void> {
  if (fault === 'a clock move' && walk.model.isRationing) throw new Nothing();
  const isFatal = fault === 'a core ends';
  if (isFatal) await answerSilent(walk, world);
  const { model } = walk;
  const end = await world.fault(fault, world.pick(core), after, until - model.now);
  wakeDialers();
  const first = await request.send(world).catch((): Answer => ({ status: 0, headers: {}, text: '', json: {} }));
  await end();
  wakeDialers();
  // Work that a request started, such as applying changed hours to held calls, may have failed. A core tries again each minute.
  world.sweepEachMinute();
  const isUnsure = first.status === 0 || first.status >= 500;
  const answer = isUnsure ? await untilServed(() => request.send(world)) : first;
  walk.isSure &&= fault === 'a clock move';
  const what = `during ${fault} after ${after} statements of core ${core % 2}, until ${new Date(until).toISOString()}`;
  const text = `${what}: ${request.text} → ${first.status}${isUnsure ? `, then ${answer.status}` : ''}`;
  walk.done.push(text);
  const expect = (copy: Model) => {
    const whole = request.expect(copy, answer);
    if (!isUnsure || (first.status === 503 && request.places)) return whole;
    // The first attempt may have succeeded. Then the second gets a repeated response, or a 404 if the first has deleted something.
    const { replayed: _, json: __, ...expected } = whole;
    if (expected.status === 204 && answer.status === 404) return { status: 404 };
    // The first attempt may have stopped dialing.
    return expected.status === 201 && answer.status === 200 ? { status: 200 } : expected;
  };
  // If the clock moves during the request, all of its effects must be those of one of the two times.
  const starts = [...new Set([model.now, until])].map((now) => Object.assign(model.clone(), { now }));
  // The first attempt may have succeeded, or only the second, which the new core gets after its hourly work. So there are two possible
  // models.
  if (isFatal && isUnsure) starts.push(model.clone());
  if (isFatal) starts[1]?.keepHouse();
  const models = listPossibleModels(starts, [{ request: { ...request, expect }, answer }], text);
  for (const one of models) {
    one.now = until;
    one.dial();
    if (!isFatal) continue;
    one.respond(false);
    one.keepHouse();
  }
  walk.model = await settle(world, models, fault !== 'an outage' && fault !== 'a clock move');
}

/** Lets the dialers dial and, with `keepsHouse`, the cores do their hourly work. Waits until they have done the same as the model. */
async function dial(walk: Walk, world: World, keepsHouse = false): Promise<void> {
  walk.model.dial();
  if (keepsHouse) walk.model.keepHouse();
  walk.model = await settle(world, [walk.model]);
}

/** Makes the silent provider refuse all calls that it has. Otherwise, a core that stops would wait for the responses. */
async function answerSilent(walk: Walk, world: World): Promise<void> {
  await world.provider.answerSilent(false);
  walk.model.respond(false);
  await dial(walk, world);
}

// Time

/**
 * Returns the times within the next two months at which something begins or ends. Later times are omitted: a key that was created while the
 * clock was wrong may expire in ten years.
 */
function listEdges(model: Model): number[] {
  const calls = [...model.calls.values()].filter(isOpen).flatMap(({ dueAt, body }) => [dueAt, body.notAfter]);
  const keys = [...model.keys.values()].map(({ expiresAt }) => expiresAt);
  const hours = model.directory.values().flatMap(({ hours }) => (hours ? [hours.from, hours.to - 1, hours.to] : []));
  const today = Math.floor(model.now / day) * day;
  const nearDays = [...hours].flatMap((at) =>
    Object.values(zones).flatMap((zone) => [-day, 0, day].map((days) => today + days + at * minute - zone)),
  );
  return [today + day, ...calls, ...keys, ...nearDays].filter((at) => at > model.now + 1 && at < model.now + 61 * day);
}

async function pass(ms: number, walk: Walk, world: World): Promise<void> {
  walk.model.now += ms;
  world.clock.advance(ms);
  walk.done.push(`time passes until ${new Date(walk.model.now).toISOString()}`);
  if (ms >= day) await world.acceptClock();
  wakeDialers();
  await dial(walk, world);
}

async function setBack(to: number, walk: Walk, world: World): Promise<void> {
  walk.done.push(`the clock is set back to ${new Date(to).toISOString()}`);
  // Real cores would have done this within a minute: they look for due calls every second, and record the time every minute.
  wakeDialers();
  await until(() => world.rest());
  if (walk.model.isClockTrusted) await world.acceptClock();
  world.clock.advance(to - walk.model.now);
  walk.model.setBack(to);
  wakeDialers();
  await dial(walk, world);
}

/** The number of users is limited because, at the end, everything that each of them sees is compared. */
const maxUsers = 14;

const steps = [
  command(740, race('nothing'), fc.tuple(anyRequest())),
  command(74, race('nothing'), fc.array(anyClear, { minLength: 2, maxLength: 3 })),
  command(5, race('tables'), fc.tuple(anyClear, anyClear, anyClear)),
  command(21, race('places'), fc.tuple(anyRequest(['place']), anyRequest(interruptions), anyClear)),
  command(5, async (walk, world, choice) => {
    // While tables are locked, calls wait, and then one statement places them.
    const requests = [1, 2, 3].map((n) => placeLater({ ...choice, target: choice.target + n }, walk.model));
    await perform(walk, world, requests, 'tables');
  }),
  command(
    5,
    async (walk, world, { option, detail, core }, planned) => {
      const fault = pick(world.faults(), option);
      // With the same core and so few statements in between, the lost result is usually the request's own.
      const [after, shared] = fault === 'a lost result' ? [detail % 4, { core }] : [detail % 16, {}];
      await pass(second, walk, world);
      const request = await prepare(pick(planned, 0), walk.model, world, shared);
      return performDuring(walk, world, request, { fault, core, after });
    },
    fc.tuple(anyRequest(repeatable)),
  ),
  command(10, async (walk, world, choice) => {
    const { now } = walk.model;
    const midnight = (Math.floor(now / day) + 1) * day;
    const edges = listEdges(walk.model).filter((at) => at <= now + day);
    const until = choice.coin ? midnight : pick([...edges, midnight], choice.option);
    const { core, detail } = choice;
    return performDuring(walk, world, placeLater(choice, walk.model), { fault: 'a clock move', core, after: detail % 6, until });
  }),
  command(40, (walk, world, { option }) => pass(pick([1, 1, 5, 40, 40, 120, 4_000, 15_000], option) * second, walk, world)),
  command(40, async (walk, world, { option, detail }) => {
    const nearest = listEdges(walk.model).sort((one, other) => one - other);
    const at = pick(nearest.slice(0, 12), option) + pick([-1, 0, 1, 20 * second], detail);
    return pass(at - walk.model.now, walk, world);
  }),
  command(6, async (walk, world, { option }) => {
    await pass(pick([1, 1, 1, 2, 12, 31], option) * day, walk, world);
    walk.done.push('the cores do their hourly work');
    await world.sweep();
    await dial(walk, world, true);
  }),
  command(
    3,
    async (walk, world, { option, detail }, planned) => {
      const days = pick([8, 20, 3_000], option);
      const before = walk.model.now;
      walk.model.now += days * day;
      walk.model.isClockTrusted = false;
      world.clock.advance(days * day);
      walk.done.push(`the clock jumps: ${days} days`);
      for (const one of planned)
        await prepare(one, walk.model, world)
          .then((request) => perform(walk, world, [request]))
          .catch(skip);
      if (detail % 3 === 0) {
        await world.sweep();
        await dial(walk, world, true);
      }
      if (detail % 2 === 0 || days > 1_000) return setBack(before, walk, world);
      await world.acceptClock();
      walk.model.isClockTrusted = true;
      return dial(walk, world);
    },
    fc.array(anyRequest(), { maxLength: 3 }),
  ),
  command(3, (walk, world, { coin }) => setBack(walk.model.now - (coin ? 4 * minute : hour), walk, world)),
  command(20, async ({ model, done }, { provider }, { coin: isUp }) => {
    done.push(`the provider is ${isUp ? 'up' : 'down'}`);
    provider.isUp = isUp;
    model.isProviderUp = isUp;
  }),
  command(6, async ({ model, done }, world, { viewer }) => {
    const by = pickViewer(model, viewer);
    done.push(`a look at the lists of ${model.users.get(by.user)?.email}`);
    if (await enter(model, world, by, 0)) await compareLists(model, world, by);
  }),
  command(2, async (walk, world, { core }) => {
    walk.done.push('a core restarts');
    await answerSilent(walk, world);
    // A core also does its hourly work when it starts.
    await world.restart(world.pick(core));
    await dial(walk, world, true);
  }),
  command(1, async (walk, world) => {
    walk.done.push('a backup is restored on SQLite');
    await answerSilent(walk, world);
    if (!(await world.restore())) return;
    // A restore ends all sessions, because someone may have stolen them with the backup.
    for (const id of walk.model.users.keys()) walk.model.signOut(id);
    await dial(walk, world, true);
  }),
  command(10, async ({ model, done }, world, { target, option, coin }) => {
    if (model.users.size >= maxUsers) throw new Nothing();
    const { id, parent } = pick(listNodes(model, 'account'), target);
    const [type, partner] = coin ? (['partner', parent] as const) : (['account', null] as const);
    const user = await world.addUser(type, coin && option % 2 === 0 ? null : id, partner);
    model.addUser(user);
    done.push(`a new user ${user.email}`);
  }),
];

/** Generates commands. If there are more from the same seed, they begin with the same ones. */
export function listCommands(seed: number, count: number): Command[] {
  return fc.sample(fc.noBias(fc.oneof(...steps)), { seed, numRuns: count });
}
