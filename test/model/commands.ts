import fc from 'fast-check';
import { outcomeStates } from '#contract/calls/dialer.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import { type Answer, readCode } from '../support/http.ts';
import { compareLists } from './lists.ts';
import {
  type Body,
  type Call,
  day,
  type Expected,
  hour,
  isOpen,
  type Key,
  type Model,
  minute,
  premiumRate,
  second,
  type User,
  type Viewer,
  type Zone,
  zones,
} from './model.ts';
import { settle } from './settle.ts';
import type { Fault, World } from './world.ts';

/** `model` is replaced if several concurrent requests may have happened in any order. */
export type Walk = {
  model: Model;
  steps: number;
  /** Whether the cores have always known what became of an outcome, so that their metrics count it. */
  isSure: boolean;
  signal: AbortSignal | undefined;
};

/** A request to the cores, and what the model says about it. `expect` may be called on several copies of the model. */
type Request = {
  text: string;
  /** Identifies the call that the request places. */
  places?: readonly [requestId: string, campaign: string];
  send(world: World): Promise<Answer>;
  expect(model: Model, answer: Answer): Expected;
};

/** Builds a request from random numbers and the model; null if the model has nothing to apply it to. */
type Plan<Choice> = (choice: Choice, model: Model, world: World) => Promise<Request | null> | Request | null;

class Step implements fc.AsyncCommand<Walk, World> {
  readonly #name: string;
  readonly #run: (walk: Walk, world: World) => Promise<string>;
  #what = '';

  constructor(name: string, run: (walk: Walk, world: World) => Promise<string>) {
    this.#name = name;
    this.#run = run;
  }

  check(): boolean {
    return true;
  }

  async run(walk: Walk, world: World): Promise<void> {
    walk.signal?.throwIfAborted();
    walk.steps++;
    this.#what = ' …';
    this.#what = await this.#run(walk, world);
  }

  /** Returns one line of a report. */
  toString(): string {
    return `\n  ${this.#name}${this.#what}`;
  }
}

function pick<Item>(items: Iterable<Item>, n: number): Item | undefined {
  const all = [...items];
  return all[n % all.length];
}

/** What another transaction has locked while requests begin: the tables, or the request IDs of the calls that they place. */
type Lock = 'nothing' | 'tables' | 'places';

/** Sends requests concurrently. The responses must be possible in some order of the requests. */
async function perform(walk: Walk, world: World, requests: readonly Request[], locked: Lock = 'nothing'): Promise<string> {
  const send = () => requests.map((request) => request.send(world));
  const places = locked === 'places' ? requests.flatMap((request) => (request.places ? [request.places] : [])) : undefined;
  const answers = await (locked === 'nothing' ? Promise.all(send()) : world.whileLocked(send, places));
  const pairs = requests.map((request, n) => ({ request, answer: answers[n] ?? { status: 0, headers: {}, text: '', json: {} } }));
  const text = ` ${pairs.map(({ request, answer }) => `${request.text} → ${answer.status}`).join(', ')}`;
  const wrong = new Set<string>();
  const models = [...possibleModels(walk.model, pairs, wrong)];
  if (models.length === 0) throw new Error(`${text}\n${[...wrong].join('\nor ')}`);
  walk.model = await settle(world, models);
  return text;
}

/** Returns the possible results of all orders of the requests, with the dialers running after any of them. Changes the given model. */
function* possibleModels(model: Model, pairs: readonly { request: Request; answer: Answer }[], wrong: Set<string>): Generator<Model> {
  if (pairs.length === 0) yield model;
  for (const [n, { request, answer }] of pairs.entries()) {
    const left = pairs.toSpliced(n, 1);
    const next = n === pairs.length - 1 ? model : model.clone();
    const mismatch = findMismatch(request.expect(next, answer), answer);
    if (mismatch !== null) {
      wrong.add(`${request.text}: ${mismatch}`);
      continue;
    }
    if (left.length > 0) yield* possibleModels(next.clone(), left, wrong);
    next.dial();
    yield* possibleModels(next, left, wrong);
  }
}

function findMismatch(expected: Expected, answer: Answer): string | null {
  const { status, code, text, replayed, json } = expected;
  const got = `${answer.status} ${answer.text.trim()}`;
  if (answer.status !== status) return `expected ${status} ${code ?? ''}, got ${got}`;
  if (code !== undefined && readCode(answer) !== code) return `expected ${code}, got ${got}`;
  if (text !== undefined && answer.text !== text) return `expected ${text.trim()}, got ${got}`;
  if (replayed !== undefined && (answer.headers['idempotent-replayed'] === 'true') !== replayed)
    return `replayed isn't ${replayed}: ${got}`;
  if (json !== undefined && !includes(answer.json, json)) return `expected ${JSON.stringify(json)}, got ${got}`;
  return null;
}

function includes(whole: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return whole === part;
  return Object.entries(part).every(
    ([name, value]) => typeof whole === 'object' && whole !== null && includes(Reflect.get(whole, name), value),
  );
}

// Who acts, and with what

/** Returns every user, and each staff user with every account and partner selected, and with none. */
export function listViewers(model: Model): Viewer[] {
  const scopes = [...model.accounts].flatMap(([account, { partner }]) => [account, null].map((one) => ({ account: one, partner })));
  return [...model.users.values()].flatMap(({ id: user, type }) =>
    (type === 'staff' ? [...scopes, null] : [null]).map((tenancy) => ({ user, tenancy })),
  );
}

/** Picks a viewer, often one who's allowed to do it. */
function pickViewer(model: Model, n: number, may: (viewer: Viewer) => boolean = () => true): Viewer {
  const all = listViewers(model);
  const viewer = pick(n % 3 === 0 ? all : all.filter(may), n >> 2) ?? all[0];
  if (!viewer) throw new Error('The model has no users.');
  return viewer;
}

/** Signs the viewer in if their session has ended, which their next request must show. @returns false for a disabled user */
export async function enter(model: Model, world: World, viewer: Viewer, core: number): Promise<boolean> {
  const user = model.users.get(viewer.user);
  if (!user) return false;
  if (!model.isSignedIn(viewer)) {
    const stale = await world.as(viewer, core, 'GET', '/console/session');
    if (stale.status !== 401) throw new Error(`The session of ${user.email} should have ended, but got ${stale.status}.`);
    if (user.isDisabled) return false;
    const code = user.lastCode === null ? null : model.findNextCode(viewer);
    if (user.lastCode !== null && code === null) return false;
    const status = await world.signIn(core, user, code);
    if (status !== 201) throw new Error(`${user.email} should be able to sign in, but got ${status}.`);
    model.signIn(viewer, code);
  }
  model.use(viewer);
  return true;
}

/** Picks one of the newest keys, usually one that works. */
const newestKeys = 8;
function pickKey(model: Model, n: number): Key | undefined {
  const active = n % 6 === 0 ? [] : [...model.keys.values()].filter((key) => model.isActive(key));
  return pick((active.length > 0 ? active : [...model.keys.values()]).slice(-newestKeys), n);
}

/** Picks a campaign, usually one that the key has access to. */
function pickCampaign(model: Model, key: Key | undefined, n: number): string | undefined {
  const all = [...model.campaigns.keys()];
  const reached = n % 6 === 0 || !key || !model.isActive(key) ? [] : all.filter((id) => model.hasAccess(key, id));
  return pick(reached.length > 0 ? reached : all, n);
}

const newestCalls = 40;
function pickCall(model: Model, n: number): Call | undefined {
  return pick([...model.calls.values()].slice(-newestCalls), n);
}

/** Returns one of fifty numbers: a few are premium-rate, or in the US. */
function toPhone(n: number): string {
  const number = n % 50;
  return number < 40 ? `+4930${20_000_000 + number}` : number < 45 ? `${premiumRate}${1_300_000 + number}` : `+1${2_012_000_100 + number}`;
}

/** @param spelling 1 writes the same body in another way; 2 leaves the request ID to a header */
function toJson({ phone, zone, notBefore, notAfter, note }: Body, requestId: string, spelling = 0): object {
  const instant = (at: number) => (spelling === 1 ? new Date(at).toISOString().replace('Z', '+00:00') : new Date(at).toISOString());
  return {
    ...(spelling === 2 ? {} : { requestId }),
    contact: { phone, timeZone: zone },
    ...(note === '' ? (spelling === 1 ? { variables: {} } : {}) : { variables: { note } }),
    ...(notBefore === null ? {} : { notBefore: instant(notBefore) }),
    ...(notAfter === null ? {} : { notAfter: instant(notAfter) }),
  };
}

function placeRequest(key: Key, campaign: string, requestId: string, body: Body, { core = 0, spelling = 0 }): Request {
  const { id, value } = key;
  return {
    places: [requestId, campaign],
    text: `place ${requestId} to ${body.phone}${body.notBefore || body.notAfter ? ' in a window' : ''}`,
    send: (world) =>
      world.request(core, 'POST', `/api/v1/campaigns/${campaign}/contacts/on-demand`, {
        key: value,
        body: toJson(body, requestId, spelling),
        ...(spelling === 2 ? { headers: { 'Idempotency-Key': `"${requestId}"` } } : {}),
      }),
    expect: (model, answer) => model.place(model.keys.get(id) ?? key, campaign, requestId, body, answer),
  };
}

/** Builds a request of a signed-in user. If it runs concurrently with one that ends the session, it may be refused. */
async function consoleRequest(
  [model, world, viewer, core]: readonly [Model, World, Viewer, number],
  [method, path, body]: readonly [string, string, object?],
  expect: (model: Model, answer: Answer) => Expected,
): Promise<Request | null> {
  if (!(await enter(model, world, viewer, core))) return null;
  const who = model.users.get(viewer.user)?.email.split('@')[0];
  return {
    text: `${who}: ${method} ${path}`,
    send: () => world.as(viewer, core, method, path, body),
    expect: (copy, answer) => (copy.isSignedIn(viewer) ? expect(copy, answer) : { status: 401, code: 'unauthorized' }),
  };
}

// What they do

const n = fc.nat(999);
const core = fc.nat(1);
/** Time windows for calls, in seconds from now. The empty one is the most frequent. */
const windows = '/ / / / / / 60/ 600/7200 /90 /36000 -60/3600 /-1 86400/172800'.split(' ').map((window) => {
  const [notBefore = null, notAfter = null] = window.split('/').map((seconds) => (seconds === '' ? null : Number(seconds)));
  return { notBefore, notAfter };
});
const zoneNames: readonly Zone[] = ['UTC', 'UTC', 'Asia/Kolkata', 'Asia/Tokyo', 'America/Phoenix'];

/** @param key chooses the key, so that concurrent requests can use the same one */
const plansWith = (key: fc.Arbitrary<number>) => ({
  place: plan(
    { key, campaign: n, request: fc.nat(400), phone: n, window: n, zone: n, core, note: fc.nat(3) },
    ({ key, campaign, request, phone, window, zone, core, note }, model) => {
      const found = pickKey(model, key);
      const target = pickCampaign(model, found, campaign);
      if (!found || target === undefined) return null;
      const { notBefore, notAfter } = pick(windows, window) ?? { notBefore: null, notAfter: null };
      const at = (seconds: number | null) => (seconds === null ? null : model.now + seconds * 1_000);
      const inWindow = { notBefore: at(notBefore), notAfter: at(notAfter) };
      const body = { phone: toPhone(phone), zone: pick(zoneNames, zone) ?? 'UTC', ...inWindow, note: note ? '' : 'x' };
      return placeRequest(found, target, `r${request}`, body, { core });
    },
  ),
  repeat: plan({ key, call: n, core, change: fc.nat(5), spelling: fc.nat(2) }, ({ key, call, core, change, spelling }, model) => {
    const [found, again] = [pickKey(model, key), pickCall(model, call)];
    if (!found || !again) return null;
    const body = change === 0 ? { ...again.body, note: 'other' } : again.body;
    return placeRequest(found, again.campaign, again.requestId, body, { core, spelling });
  }),
  cancel: plan({ key, call: n, campaign: fc.nat(20), core, by: fc.nat(2) }, ({ key, call, campaign, core, by }, model) => {
    const [found, target] = [pickKey(model, key), pickCall(model, call)];
    if (!found) return null;
    // Sometimes, the campaign doesn't have the call.
    const where = campaign === 0 || !target ? (pick(model.campaigns.keys(), call) ?? '') : target.campaign;
    const path = by === 0 ? `by-request-id/${target?.requestId ?? 'none'}` : (target?.id ?? 'none');
    return {
      text: `cancel ${target?.requestId} by ${by === 0 ? 'request' : 'contact'}`,
      send: (world) => world.request(core, 'DELETE', `/api/v1/campaigns/${where}/contacts/on-demand/${path}`, { key: found.value }),
      expect(copy) {
        const named = by === 0 ? copy.findCall(where, target?.requestId ?? 'none') : copy.calls.get(target?.id ?? '');
        return copy.cancel(copy.keys.get(found.id) ?? found, where, named);
      },
    };
  }),
  createKey: plan({ viewer: n, days: fc.option(fc.integer({ min: 1, max: 60 })), core }, ({ viewer, days, core }, model, world) => {
    const by = pickViewer(model, viewer);
    const date = new Date(model.now + (days ?? 0) * day).toISOString().slice(0, 10);
    const expiration = days === null ? { kind: 'none' } : { kind: 'custom', date };
    const name = `Key ${model.keys.size}`;
    const route = ['POST', '/console/api-keys', { name, expiration, timeZone: 'UTC' }] as const;
    return consoleRequest([model, world, by, core], route, (copy, answer) => copy.createKey(by, days, answer));
  }),
  limitKey: plan({ viewer: n, key, calls: fc.integer({ min: 1, max: 4 }), core }, ({ viewer, key, calls, core }, model, world) => {
    // While a key has no limit, its calls are counted with a delay.
    const fresh = [...model.keys.values()].filter(({ placed, callsPerDay }) => callsPerDay !== null || placed.size === 0);
    const found = pick(fresh.slice(-newestKeys), key);
    if (!found) return null;
    const by = pickViewer(model, viewer, (one) => model.seesKey(one, found));
    const route = ['PATCH', `/console/api-keys/${found.id}`, { callsPerDay: calls }] as const;
    return consoleRequest([model, world, by, core], route, (copy) =>
      copy.limitKey(by, copy.keys.get(found.id) ?? found, { callsPerDay: calls }),
    );
  }),
  limitAddresses: plan({ viewer: n, key, isElsewhere: fc.boolean(), core }, ({ viewer, key, isElsewhere, core }, model, world) => {
    const limited = [...model.keys.values()].filter((one) => one.isElsewhere);
    const found = isElsewhere ? pickKey(model, key) : pick(limited, key);
    if (!found) return null;
    const by = pickViewer(model, viewer, (one) => model.seesKey(one, found));
    const addresses = isElsewhere ? ['10.0.0.0/8', '2001:db8::/32'] : key % 2 === 0 ? null : ['127.0.0.0/8'];
    const route = ['PATCH', `/console/api-keys/${found.id}`, { addresses }] as const;
    return consoleRequest([model, world, by, core], route, (copy) => copy.limitKey(by, copy.keys.get(found.id) ?? found, { isElsewhere }));
  }),
  respond: plan({ takes: fc.nat(3) }, ({ takes }, model) =>
    [...model.calls.values()].some(({ stage }) => stage === 'open')
      ? {
          text: `the silent provider ${takes === 0 ? 'takes' : "doesn't take"} what it has`,
          send: (world) => world.answerSilent(takes === 0),
          expect: (copy) => copy.respond(takes === 0),
        }
      : null,
  ),
  revoke: plan({ viewer: n, key, cancels: fc.boolean(), core }, ({ viewer, key, cancels, core }, model, world) => {
    // Often, the provider is still silent about one of the key's calls.
    const open = [...model.calls.values()].filter(({ stage }) => stage === 'open');
    const found = model.keys.get(key % 3 === 0 ? (pick(open, key)?.key ?? '') : '') ?? pickKey(model, key);
    if (!found) return null;
    const by = pickViewer(model, viewer, (one) => model.seesKey(one, found));
    const route = ['DELETE', `/console/api-keys/${found.id}?cancelQueuedCalls=${cancels}`] as const;
    return consoleRequest([model, world, by, core], route, (copy) => copy.revokeKey(by, copy.keys.get(found.id) ?? found, cancels));
  }),
  outcome: plan({ call: n, state: n, optsOut: fc.nat(9), signed: fc.nat(15), core }, ({ call, state, optsOut, signed, core }, model) => {
    const id = pickCall(model, call)?.id ?? 'none';
    const outcome = { handoffId: id, state: pick(outcomeStates, state) ?? 'busy', ...(optsOut === 0 ? { optOut: true } : {}) };
    return {
      text: `outcome of ${model.calls.get(id)?.requestId}: ${outcome.state}${optsOut === 0 ? ' with an opt-out' : ''}`,
      send: (world) => (signed === 0 ? world.report(core, outcome, `whsec_${'else'.repeat(10)}`) : world.report(core, outcome)),
      expect: (copy) => copy.reportOutcome(id, outcome.state, optsOut === 0, signed !== 0),
    };
  }),
  listNumber: plan({ viewer: n, phone: n, core }, ({ viewer, phone, core }, model, world) => {
    const [by, number] = [pickViewer(model, viewer), toPhone(phone)];
    const route = ['POST', '/console/do-not-call', { phones: [number], reason: 'asked' }] as const;
    return consoleRequest([model, world, by, core], route, (copy) => copy.listNumber(by, number));
  }),
  lift: plan({ viewer: n, phone: n, core }, ({ viewer, phone, core }, model, world) => {
    const [by, number] = [pickViewer(model, viewer), toPhone(phone)];
    const scope = model.findScope(by);
    if (!scope || scope.account !== null) return null;
    let lifted: string | null = null;
    const path = `/console/do-not-call?search=${encodeURIComponent(number)}`;
    return consoleRequest([model, world, by, core], ['GET', path], (copy) => copy.lift(by, number, lifted)).then(
      (search): Request | null =>
        search && {
          ...search,
          async send(world) {
            const found = await search.send(world);
            const [entry] = found.status === 200 ? doNotCallSchema.parse(found.json).entries : [];
            if (!entry) return found;
            lifted = entry.scope.id;
            return world.as(by, core, 'DELETE', `/console/do-not-call/${entry.id}`, { reason: 'asked again' });
          },
        },
    );
  }),
  hangUp: plan({ key, campaign: n, request: n, phone: n, turns: fc.nat(30), core }, (chosen, model) => {
    const found = pickKey(model, chosen.key);
    const campaign = pickCampaign(model, found, chosen.campaign);
    if (!found || campaign === undefined) return null;
    const [requestId, body] = [
      `h${chosen.request}`,
      { phone: toPhone(chosen.phone), zone: 'UTC' as const, notBefore: null, notAfter: null, note: '' },
    ];
    const again = placeRequest(found, campaign, requestId, body, { core: chosen.core });
    return {
      text: `hang up, then ${again.text}`,
      async send(world) {
        await world.hangUp(
          chosen.core,
          `/api/v1/campaigns/${campaign}/contacts/on-demand`,
          found.value,
          toJson(body, requestId),
          chosen.turns,
        );
        return again.send(world);
      },
      // The first request may have placed the call.
      expect(copy, answer) {
        const { replayed: _, ...expected } = again.expect(copy, answer);
        return expected;
      },
    };
  }),
  setHours: plan({ viewer: n, target: n, hours: fc.nat(5), core }, ({ viewer, target, hours, core }, model, world) => {
    const by = pickViewer(model, viewer);
    const partners = new Set([...model.accounts.values()].map(({ partner }) => partner));
    const targets = [
      ...[...model.campaigns.keys()].map((id) => ['campaign', id] as const),
      ...[...model.accounts.keys()].map((id) => ['account', id] as const),
      ...[...partners].map((id) => ['partner', id] as const),
    ];
    const [scope, id] = pick(targets, target) ?? ['campaign', ''];
    const chosen = hours < 3 ? null : { from: hours * 120, to: 1_020 };
    const time = (at: number) => `${String(Math.floor(at / 60)).padStart(2, '0')}:${String(at % 60).padStart(2, '0')}`;
    const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
    const rules = chosen ? [{ prefix: '', days, from: time(chosen.from), to: time(chosen.to) }] : [];
    const route = ['PUT', `/console/calling-hours?scope=${scope}&id=${id}`, { rules }] as const;
    return consoleRequest([model, world, by, core], route, (copy) => copy.setHours(by, id, chosen));
  }),
  setNumbers: plan({ viewer: n, target: n, rules: n, core }, ({ viewer, target, rules, core }, model, world) => {
    const by = pickViewer(model, viewer);
    const partners = [...model.accounts.values()].map(({ partner }) => ['partner', partner] as const);
    const [scope, id] = pick([...[...model.accounts.keys()].map((id) => ['account', id] as const), ...partners], target) ?? ['account', ''];
    const chosen = {
      countries: pick([null, [], ['DE'], ['US', 'DE']], rules) ?? null,
      kinds: pick([null, [], ['premium-rate' as const]], rules >> 2) ?? null,
    };
    const route = ['PUT', `/console/numbers?scope=${scope}&id=${id}`, chosen] as const;
    return consoleRequest([model, world, by, core], route, (copy) => copy.setNumbers(by, id, chosen));
  }),
  manage: plan({ viewer: n, target: n, what: fc.nat(9), core }, ({ viewer, target, what, core }, model, world) => {
    const [account, { partner } = { partner: '' }] = pick(model.accounts, target) ?? [''];
    const by = pickViewer(model, viewer, (one) => model.manages(one, partner));
    const name = `Name ${model.keys.size} ${target}`;
    const at = '/console/directory';
    const tenant = [model, world, by, core] as const;
    // Every list is compared for every campaign.
    if (what === 0 && model.accounts.size < 6)
      return consoleRequest(tenant, ['POST', `${at}/accounts`, { name, partnerId: partner }], (copy, answer) =>
        copy.createAccount(by, partner, name, answer),
      );
    if (what < 3 && model.campaigns.size < 8)
      return consoleRequest(tenant, ['POST', `${at}/campaigns`, { name, accountId: account }], (copy, answer) =>
        copy.createCampaign(by, account, name, answer),
      );
    const campaign = what < 6 ? pick(model.campaigns.keys(), target) : undefined;
    const path = campaign === undefined ? `${at}/accounts/${account}` : `${at}/campaigns/${campaign}`;
    return consoleRequest(tenant, ['PATCH', path, { name }], (copy) => copy.rename(by, campaign ?? account, name));
  }),
  signOut: plan({ viewer: n, core }, ({ viewer, core }, model, world) => {
    const by = pickViewer(model, viewer);
    return consoleRequest([model, world, by, core], ['DELETE', '/console/session'], (copy) => copy.signOut(by));
  }),
  changeFactor: plan({ viewer: n, core }, async ({ viewer, core }, model, world) => {
    const by = pickViewer(model, viewer);
    const isEnrolled = model.users.get(by.user)?.lastCode !== null;
    if (!(await enter(model, world, by, core))) return null;
    const code = model.findNextCode(by);
    if (code === null) return null;
    return {
      text: `${model.users.get(by.user)?.email} ${isEnrolled ? 'removes' : 'sets up'} a second factor`,
      send: () => (isEnrolled ? world.removeFactor(by, core, code) : world.enroll(by, core, code)),
      expect: (copy) => (isEnrolled ? copy.removeFactor(by) : copy.enroll(by, code)),
    };
  }),
  disableUser: plan({ viewer: n, user: n, isDisabled: fc.boolean(), core }, ({ viewer, user, isDisabled, core }, model, world) => {
    const found = pick(model.users.values(), user);
    if (!found || found.type === 'staff') return null;
    const by = pickViewer(model, viewer, (one) => model.seesUser(one, found));
    const route = ['PATCH', `/console/users/${found.id}`, { disabled: isDisabled }] as const;
    return consoleRequest([model, world, by, core], route, (copy) =>
      withUser(copy, by, found, (it) => copy.disableUser(by, it, isDisabled)),
    );
  }),
  moveUser: plan({ viewer: n, user: n, account: n, core }, ({ viewer, user, account, core }, model, world) => {
    const found = pick(model.users.values(), user);
    if (!found || found.type === 'staff') return null;
    const by = pickViewer(model, viewer, (one) => model.seesUser(one, found) && model.findScope(one)?.account === null);
    const own = [...model.accounts].filter(([, { partner }]) => account % 6 === 0 || partner === model.findScope(by)?.partner);
    const to = pick([...own.map(([id]) => id), null], account) ?? null;
    const route = ['PATCH', `/console/users/${found.id}`, { accountId: to }] as const;
    return consoleRequest([model, world, by, core], route, (copy) => withUser(copy, by, found, (it) => copy.moveUser(by, it, to)));
  }),
  deleteUser: plan({ viewer: n, user: n, cancels: fc.boolean(), core }, ({ viewer, user, cancels, core }, model, world) => {
    const found = pick(model.users.values(), user);
    if (!found || found.type === 'staff') return null;
    const by = pickViewer(model, viewer, (one) => model.seesUser(one, found));
    const route = ['DELETE', `/console/users/${found.id}?cancelQueuedCalls=${cancels}`] as const;
    return consoleRequest([model, world, by, core], route, (copy) => withUser(copy, by, found, (it) => copy.deleteUser(by, it, cancels)));
  }),
});

/** The user may have been deleted at the same time. */
function withUser(model: Model, viewer: Viewer, { id }: User, expect: (user: User) => Expected): Expected {
  const user = model.users.get(id);
  return user ? expect(user) : { status: viewer.user === id ? 401 : 404 };
}

/** What a client may repeat if it doesn't know what became of it. */
const repeatable = 'place repeat cancel outcome revoke deleteUser disableUser moveUser limitAddresses setHours setNumbers'.split(' ');

/**
 * Sends a request while something happens to the cores or to their database, and repeats it if it isn't clear what became of it. A call that
 * got a 503 hasn't been placed or cancelled.
 */
async function performInFault(walk: Walk, world: World, request: Request, fault: Fault, which: number, after: number): Promise<string> {
  await pass(second, walk, world);
  if (isFatal(fault)) {
    await world.answerSilent(false);
    walk.model.respond(false);
    walk.model = await settle(world, [walk.model]);
  }
  const end = await world.fault(fault, which, after);
  world.wake();
  const nothing: Answer = { status: 0, headers: {}, text: '', json: {} };
  const first = await request.send(world).catch(() => nothing);
  await end();
  const isUnsure = first.status === 0 || first.status >= 500;
  const answer = isUnsure ? await request.send(world) : first;
  walk.isSure = false;
  const text = ` ${request.text} → ${first.status}${isUnsure ? `, then ${answer.status}` : ''}`;
  const expect = (model: Model) => {
    const whole = request.expect(model, answer);
    if (!isUnsure || (first.status === 503 && request.places)) return whole;
    // The first time, it may have succeeded.
    const { replayed: _, json: __, ...expected } = whole;
    return expected.status === 204 && answer.status === 404 ? { status: 404 } : expected;
  };
  const wrong = new Set<string>();
  const models = [...possibleModels(walk.model, [{ request: { ...request, expect }, answer }], wrong)];
  if (models.length === 0) throw new Error(`${text}\n${[...wrong].join('\nor ')}`);
  for (const model of models) {
    if (!isFatal(fault)) continue;
    model.dial();
    model.respond(false);
    model.keepHouse();
  }
  walk.model = await settle(world, models, { withErased: true, quietFor: isFatal(fault) ? 100 : fault === 'an outage' ? 0 : 700 });
  return text;
}

const isFatal = (fault: Fault) => fault === 'a core ends';

type Planned = { name: string; prepare(model: Model, world: World): Promise<Request | null> };

function plan<Choice extends object>(choice: { [Name in keyof Choice]: fc.Arbitrary<Choice[Name]> }, run: Plan<Choice>) {
  return fc.record(choice).map((chosen) => ({ prepare: async (model: Model, world: World) => run(chosen, model, world) }));
}

/** How often each is chosen, compared with the others. */
const weights: Readonly<Record<string, number>> = {
  place: 16,
  repeat: 5,
  cancel: 7,
  outcome: 10,
  createKey: 5,
  revoke: 2,
  limitKey: 2,
  respond: 3,
  moveUser: 2,
};
const requestWith = (key: fc.Arbitrary<number>, names?: readonly string[]) =>
  fc.oneof(
    ...Object.entries(plansWith(key))
      .filter(([name]) => names?.includes(name) ?? true)
      .map(([name, planned]) => ({
        weight: weights[name] ?? 1,
        arbitrary: planned.map((one): Planned => ({ name, ...one })),
      })),
  );
const anyRequest = requestWith(n);

const one = anyRequest.map(
  ({ name, prepare }) =>
    new Step(name, async (walk, world) => {
      const request = await prepare(walk.model, world);
      return request ? perform(walk, world, [request]) : ' (nothing to do it with)';
    }),
);

/** If two of these run concurrently, it shows only much later which was first. Of two changes of a key's limits, the core refuses one. */
const silentChanges = ['setHours', 'setNumbers', 'manage', 'disableUser', 'moveUser', 'listNumber', 'lift', 'createKey', 'limitAddresses'];
const locks = fc.constantFrom<Lock[]>(...Array(7).fill('nothing'), 'tables', 'places', 'places');
/** What must not happen while a call is being placed, after the request was checked. */
const interruptions = ['revoke', 'revoke', 'deleteUser', 'disableUser', 'moveUser', 'listNumber', 'limitAddresses'];
const race = fc
  .tuple(fc.nat(11).map(fc.constant), locks)
  .chain(([key, locked]) =>
    fc.record({
      locked: fc.constant(locked),
      planned:
        locked === 'places'
          ? fc.tuple(requestWith(key, ['place']), requestWith(key, interruptions), requestWith(key))
          : fc.array(requestWith(key), { minLength: 2, maxLength: 3 }),
    }),
  )
  .map(
    ({ planned, locked }) =>
      new Step(`at once${locked === 'nothing' ? '' : `, while ${locked} are locked`}:`, async (walk, world) => {
        const requests: Request[] = [];
        let changes = 0;
        for (const { name, prepare } of planned) {
          // A new limit counts the calls of the last minute only once they've been recorded, and a client that hangs up may still place a
          // call.
          if (name === 'hangUp' || name === 'limitKey' || name === 'changeFactor' || (silentChanges.includes(name) && ++changes > 1))
            continue;
          const request = await prepare(walk.model, world);
          if (request) requests.push(request);
        }
        return requests.length === 0 ? ' nothing' : perform(walk, world, requests, locked);
      }),
  );

/** Builds a command in which time passes or the surroundings change. */
function event<Choice>(name: string, arbitrary: fc.Arbitrary<Choice>, run: (choice: Choice, walk: Walk, world: World) => Promise<string>) {
  return arbitrary.map((choice) => new Step(name, (walk, world) => run(choice, walk, world)));
}

/** Times at which something begins or ends, without those that have passed. */
function listEdges(model: Model): number[] {
  const calls = [...model.calls.values()].filter(isOpen).flatMap(({ dueAt, body }) => [dueAt, body.notAfter ?? 0]);
  const keys = [...model.keys.values()].map(({ expiresAt }) => expiresAt ?? 0);
  const hours = [...model.hours.values()].flatMap(({ from, to }) => [from, to - 1, to]);
  const daily = Object.values(zones).flatMap((zone) => hours.map((at) => at * 60_000 - zone));
  const today = Math.floor(model.now / day) * day;
  return [...calls, ...keys, ...daily.flatMap((at) => [-day, 0, day].map((days) => today + days + at))].filter((at) => at > model.now + 1);
}

async function pass(given: number, walk: Walk, world: World): Promise<void> {
  // A call whose `notAfter` comes before its next try lapses at one of these times or within a minute, depending on what the cores do
  // first.
  const until = walk.model.now + given;
  const unclear = [...walk.model.calls.values()].filter(
    ({ stage, dueAt, body }) => stage === 'retry' && (body.notAfter ?? until) < until && dueAt > until,
  );
  const ms = Math.max(until, ...unclear.map(({ dueAt }) => dueAt)) - walk.model.now;
  walk.model.now += ms;
  world.clock.advance(ms);
  if (ms >= day) await world.acceptClock();
  world.wake();
  walk.model.dial();
  walk.model = await settle(world, [walk.model]);
}

const events = [
  event('time passes:', fc.constantFrom(1, 1, 5, 40, 40, 120, 4_000, 15_000), async (seconds, walk, world) => {
    await pass(seconds * 1_000, walk, world);
    return ` ${seconds} s`;
  }),
  event('time passes until', fc.record({ edge: n, by: fc.constantFrom(-1, 0, 1, 20_000) }), async ({ edge, by }, walk, world) => {
    const nearest = listEdges(walk.model)
      .sort((one, other) => one - other)
      .slice(0, 12);
    const at = pick(nearest, edge);
    if (at === undefined) return ' nothing';
    await pass(at + by - walk.model.now, walk, world);
    return ` ${new Date(at + by).toISOString()}`;
  }),
  event('nights pass:', fc.constantFrom(1, 1, 1, 2, 12, 31), async (days, walk, world) => {
    await pass(days * day, walk, world);
    await world.sweep();
    walk.model.keepHouse();
    walk.model = await settle(world, [walk.model], { withErased: true });
    return ` ${days}`;
  }),
  event('the provider is', fc.boolean(), async (isUp, walk, world) => {
    world.isProviderUp = isUp;
    walk.model.isProviderUp = isUp;
    return isUp ? ' up' : ' down';
  }),
  event('a look at the lists of', n, async (viewer, walk, world) => {
    const by = pickViewer(walk.model, viewer);
    if (!(await enter(walk.model, world, by, 0))) return ' nobody';
    await compareLists(walk.model, world, by);
    return ` ${walk.model.users.get(by.user)?.email}`;
  }),
];
async function setBack(to: number, walk: Walk, world: World): Promise<string> {
  // Cores ask for due calls every second, and record the time every minute.
  await world.polled();
  if (walk.model.isClockTrusted) await world.acceptClock();
  world.clock.advance(to - walk.model.now);
  walk.model.setBack(to);
  world.wake();
  walk.model.dial();
  walk.model = await settle(world, [walk.model]);
  return ` to ${new Date(to).toISOString()}`;
}

const rare = [
  event(
    'during',
    fc.record({ fault: n, which: core, after: fc.nat(15), planned: requestWith(n, repeatable) }),
    async ({ fault, which, after, planned }, walk, world) => {
      const chosen = pick(world.faults(), fault) ?? 'a core ends';
      const request = await planned.prepare(walk.model, world);
      const what = ` ${chosen} after ${after} statements of core ${which}:`;
      return what + (request ? await performInFault(walk, world, request, chosen, which, after) : ' nothing');
    },
  ),
  event(
    'the clock jumps:',
    fc.record({ days: fc.constantFrom(8, 20, 3_000), isRight: fc.boolean(), planned: fc.array(anyRequest, { maxLength: 3 }) }),
    async ({ days, isRight, planned }, walk, world) => {
      const before = walk.model.now;
      walk.model.now += days * day;
      walk.model.isClockTrusted = false;
      world.clock.advance(days * day);
      let text = ` ${days} days`;
      for (const { prepare } of planned) {
        const request = await prepare(walk.model, world);
        if (request) text += `, ${await perform(walk, world, [request])}`;
      }
      if (!isRight || days > 1_000) return `${text}, and back${await setBack(before, walk, world)}`;
      await world.acceptClock();
      walk.model.isClockTrusted = true;
      walk.model.dial();
      walk.model = await settle(world, [walk.model]);
      return text;
    },
  ),
  event('the clock is set back', fc.constantFrom(4 * minute, hour), (by, walk, world) => setBack(walk.model.now - by, walk, world)),
  event('a core restarts', core, async (which, walk, world) => {
    await world.answerSilent(false);
    walk.model.respond(false);
    walk.model = await settle(world, [walk.model]);
    // A core also does its hourly work when it starts.
    await world.restart(which);
    walk.model.dial();
    walk.model.keepHouse();
    walk.model = await settle(world, [walk.model], { withErased: true });
    return '';
  }),
  event('a backup is restored', n, async (_, walk, world) => {
    await world.answerSilent(false);
    walk.model.respond(false);
    walk.model = await settle(world, [walk.model]);
    if (!(await world.restore())) return ' on SQLite only';
    // Someone may have taken the backup with its sessions.
    for (const user of walk.model.users.values()) user.session = null;
    walk.model.dial();
    walk.model.keepHouse();
    walk.model = await settle(world, [walk.model], { withErased: true });
    return '';
  }),
  event('a new user', n, async (type, walk, world) => {
    const [account, { partner } = { partner: '' }] = pick(walk.model.accounts, type >> 2) ?? [''];
    const isPartner = type % 2 === 0;
    const ofUser = { account: isPartner && type % 4 === 0 ? null : account, partner: isPartner ? partner : null };
    const userType = isPartner ? 'partner' : 'account';
    const { id, email } = await world.addUser(userType, ofUser.account, ofUser.partner);
    walk.model.users.set(id, { id, email, type: userType, ...ofUser, isDisabled: false, session: null, lastCode: null });
    return ` ${email}`;
  }),
];

const eventually = fc.oneof({ weight: 6, arbitrary: fc.oneof(...events) }, { weight: 2, arbitrary: fc.oneof(...rare) });
const anyStep = fc.oneof({ weight: 14, arbitrary: one }, { weight: 2, arbitrary: race }, { weight: 3, arbitrary: eventually });

/** Generates at most this many commands. */
export function anyCommands(max: number, replayPath?: string) {
  return fc.commands([anyStep], { maxCommands: max, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) });
}
