import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { answerers, outcomeStates } from '#contract/calls/dialer.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import type { Answer } from '../support/http.ts';
import { day, type Expected, refuse, second } from './basics.ts';
import { type Body, type Call, type Model, premiumRate, type Zone } from './model.ts';
import type { Id, Key, Node, User, Viewer } from './people.ts';
import type { Place, World } from './world.ts';

/** A request to the cores, and what the model says about it. `expect` may be called on several copies of the model. */
export type Request = {
  text: string;
  /** Identifies the call that the request places. */
  places?: Place;
  /** @param signal makes the client hang up */
  send(world: World, signal?: AbortSignal | null): Promise<Answer>;
  expect(model: Model, answer: Answer): Expected;
};

/** Random numbers, by which each command chooses from what the model has. They're independent of each other. */
const n = fc.nat(999);
const numbers = { viewer: n, key: n, campaign: n, call: n, phone: n, window: n, zone: n, target: n, option: n, detail: n, core: n };
export type Choice = Readonly<Record<keyof typeof numbers, number> & { coin: boolean }>;
export const anyChoice: fc.Arbitrary<Choice> = fc.record({ ...numbers, coin: fc.boolean() });

type Build = (choice: Choice, model: Model, world: World) => Promise<Request> | Request;
type Command = { weight: number; build: Build };

const weighted = (weight: number, build: Build): Command => ({ weight, build });

/** Thrown if the model doesn't yet have what a command needs, such as a call to cancel. */
export class Nothing extends Error {}

export function pick<Item>(items: Iterable<Item>, n: number): Item {
  const all = [...items];
  const picked = all[n % all.length];
  if (picked === undefined) throw new Nothing();
  return picked;
}

// Who sends a request, and which data it's about

export function listNodes(model: Model, ...kinds: Node['kind'][]): Node[] {
  return [...model.directory.values()].filter(({ kind }) => kinds.includes(kind));
}

/** Returns every user, and each staff user with every account and partner selected, and with none. */
export function listViewers(model: Model): Viewer[] {
  const tenancies = [...listNodes(model, 'account', 'partner'), null];
  return [...model.users.values()].flatMap(({ id: user, type }) =>
    (type === 'staff' ? tenancies : [null]).map((tenancy) => ({ user, tenancy })),
  );
}

/** Picks a viewer, often one who's allowed to send the request, and usually one who's signed in, because signing in takes a while. */
export function pickViewer(model: Model, n: number, may: (viewer: Viewer) => boolean = () => true): Viewer {
  const all = listViewers(model);
  const isIn = ({ user }: Viewer) => model.isSignedIn(user);
  const [allowed, signedIn] = [all.filter(may), all.filter(isIn)];
  const chosen = [allowed.filter(isIn), allowed, signedIn, all].slice([3, 2, 1][n % 6] ?? 0).find((some) => some.length > 0);
  // Picks a user first, and then what they act for. Otherwise, almost every viewer would be a staff user, because only staff can act for
  // many accounts and partners.
  const ofUsers = Map.groupBy(chosen ?? [], ({ user }) => user).values();
  return pick(pick(ofUsers, n >> 3), n);
}

/** Signs the viewer in if their session has ended. @returns whether they're signed in, which a disabled user can't be */
export async function enter(model: Model, world: World, { user: id }: Viewer, core: number): Promise<boolean> {
  const user = model.users.get(id);
  if (!user) return false;
  if (!model.isSignedIn(id)) {
    const code = user.lastCode === null ? null : model.findNextCode(id);
    if (user.isDisabled || (user.lastCode !== null && code === null)) return false;
    await world.signIn(core, user, code);
    model.signIn(id, code);
  }
  model.use(id);
  return true;
}

/**
 * Picks one of the newest keys, usually an active one. One pick in six is a key that has placed calls but is refused for now, because a
 * core may still remember it as valid.
 */
const newestKeys = 8;
function pickKey(model: Model, n: number): Key {
  const all = [...model.keys.values()];
  const active = all.filter((key) => model.isActive(key));
  const isPaused = ({ isElsewhere, creator }: Key) => isElsewhere || model.users.get(creator)?.isDisabled;
  const paused = all.filter((key) => key.placed.size > 0 && !key.revoked && isPaused(key));
  const chosen = [paused, active, all].slice([2, 0][n % 6] ?? 1).find((keys) => keys.length > 0);
  return pick((chosen ?? []).slice(-newestKeys), n >> 2);
}

/** Picks a campaign, usually one that the key has access to. */
function pickCampaign(model: Model, key: Key, n: number): Id {
  const all = listNodes(model, 'campaign').map(({ id }) => id);
  const reached = n % 6 === 0 || !model.users.has(key.creator) ? [] : all.filter((id) => model.hasAccess(key, id));
  return pick(reached.length > 0 ? reached : all, n >> 2);
}

/** Picks a node that has a rule, or sometimes one that gets it. A rule is soon removed again, because most calls should leave freely. */
function pickRuled(model: Model, n: number, hasRule: (node: Node) => boolean, ...kinds: Node['kind'][]): Node {
  const all = listNodes(model, ...kinds);
  const ruled = all.filter(hasRule);
  return pick(n % 3 > 0 && ruled.length > 0 ? ruled : all, n >> 2);
}

const newestCalls = 40;
const pickCall = (model: Model, n: number): Call => pick([...model.calls.values()].slice(-newestCalls), n);

/** Returns the calls about which the provider is still silent. */
const listSilent = (model: Model): Call[] => [...model.calls.values()].filter(({ stage }) => stage === 'open');

/** Returns one of fifty numbers: a few are premium-rate, or in the US. */
function toPhone(n: number): string {
  const number = n % 50;
  return number < 40 ? `+4930${20_000_000 + number}` : number < 45 ? `${premiumRate}${1_300_000 + number}` : `+1${2_012_000_100 + number}`;
}

// Integrators

/** Time windows for calls, in seconds from now. The empty one is the most frequent. */
const windows = '/ / / / / / 60/ 600/7200 /90 /36000 -60/3600 /-1 86400/172800'.split(' ').map((window) => window.split('/'));
const zoneNames: readonly Zone[] = ['UTC', 'UTC', 'Asia/Kolkata', 'Asia/Tokyo', 'America/Phoenix'];

const toPath = (campaign: string) => `/api/v1/campaigns/${campaign}/contacts/on-demand`;

/** @param spelling 1 writes the same body in another way; 2 leaves the request ID to a header */
function toJson({ phone, zone, notBefore, notAfter, note }: Body, requestId: string, spelling = 0): object {
  const instant = (at: number) => (spelling === 1 ? new Date(at).toISOString().replace('Z', '+00:00') : new Date(at).toISOString());
  return {
    ...(spelling === 2 ? {} : { requestId }),
    contact: { phone, timeZone: zone },
    ...(note === '' ? (spelling === 1 ? { variables: {} } : {}) : { variables: { note } }),
    ...(notBefore === 0 ? {} : { notBefore: instant(notBefore) }),
    ...(notAfter === Number.POSITIVE_INFINITY ? {} : { notAfter: instant(notAfter) }),
  };
}

function placeRequest({ id, value }: Key, campaign: string, requestId: string, body: Body, core: number, spelling = 0): Request {
  return {
    places: [requestId, campaign],
    text: `place ${requestId} to ${body.phone}${body.notBefore > 0 || body.notAfter < Number.POSITIVE_INFINITY ? ' in a window' : ''}`,
    send: (world, signal = null) =>
      world.request(core, 'POST', toPath(campaign), {
        ...{ key: value, body: toJson(body, requestId, spelling), signal },
        headers: spelling === 2 ? { 'Idempotency-Key': `"${requestId}"` } : {},
      }),
    expect: (model, answer) => model.place(id, campaign, requestId, body, answer),
  };
}

function place({ key, campaign, phone, window, zone, detail, target, core }: Choice, model: Model): Request {
  const found = pickKey(model, key);
  const at = (seconds = '', none = 0) => (seconds === '' ? none : model.now + Number(seconds) * second);
  const [notBefore, notAfter] = pick(windows, window);
  const inWindow = { notBefore: at(notBefore), notAfter: at(notAfter, Number.POSITIVE_INFINITY) };
  const body = { phone: toPhone(phone), zone: pick(zoneNames, zone), ...inWindow, note: detail % 4 ? '' : 'x' };
  return placeRequest(found, pickCampaign(model, found, campaign), `r${target % 400}`, body, core);
}

/** Places a call that isn't due before the next day, usually with a key that has a limit. */
export function placeLater({ key, campaign, phone, target, core }: Choice, model: Model): Request {
  const limited = [...model.keys.values()].filter((one) => one.callsPerDay !== null && model.isActive(one));
  const found = limited.length > 0 ? pick(limited, key) : pickKey(model, key);
  const window = { notBefore: model.now + 2 * day, notAfter: Number.POSITIVE_INFINITY };
  const body = { phone: toPhone(phone), zone: 'UTC', ...window, note: '' } as const;
  return placeRequest(found, pickCampaign(model, found, campaign), `e${target}`, body, core);
}

// Users of the console

type UserRequest = {
  route: readonly [method: keyof typeof statuses, path: string, body?: object];
  /** Whether a viewer is probably allowed to send the request. */
  may?: (viewer: Viewer) => boolean;
  /** Replaces the request to the route. */
  send?: (world: World, by: Viewer) => Promise<Answer>;
  /** What the model expects, apart from the method's usual status. */
  expect(model: Model, by: Viewer, answer: Answer): Expected | undefined;
};

const statuses = { GET: 200, POST: 201, PUT: 200, PATCH: 200, DELETE: 204 };

/** Builds a request by a user, whose session may have ended. */
function byUser(weight: number, describe: (choice: Choice, model: Model) => UserRequest): Command {
  return weighted(weight, async (choice, model, world) => {
    const asked = describe(choice, model);
    const by = pickViewer(model, choice.viewer, asked.may);
    if (model.isSignedIn(by.user) || choice.detail % 4 > 0) await enter(model, world, by, choice.core);
    const [method, path, body] = asked.route;
    return {
      text: `${model.users.get(by.user)?.email.split('@')[0]}: ${method} ${path}`,
      send: () => (asked.send ? asked.send(world, by) : world.as(by, choice.core, method, path, body)),
      expect(copy, answer) {
        if (copy.isSignedIn(by.user)) return { status: statuses[method], ...asked.expect(copy, by, answer) };
        // A concurrent request may delete the user and revoke their keys after this request's session was checked.
        return refuse(!copy.users.has(by.user) && answer.status === 404 ? 'not-found' : 'unauthorized');
      },
    };
  });
}

/** There are only a few accounts and campaigns, because the lists of all of them are compared. */
const most = { account: 6, campaign: 8 };

/** Builds a request about one of the users, except staff. */
function aboutUser(weight: number, describe: (user: User, choice: Choice, model: Model) => UserRequest): Command {
  return byUser(weight, (choice, model) => {
    const users = model.users.values().filter(({ type }) => type !== 'staff');
    const user = pick(users, choice.target);
    return { may: (viewer) => model.seesUser(viewer, user), ...describe(user, choice, model) };
  });
}

/** @param toRules returns what the model stores */
function setRules({ kind, id }: Node, name: string, body: object, toRules: (model: Model) => Partial<Node>): UserRequest {
  return {
    route: ['PUT', `/console/${name}?scope=${kind}&id=${id}`, body],
    expect: (model, by) => model.setRules(by, id, toRules(model)),
  };
}

/** Each command with how often it's chosen, compared with the other commands. */
const commands = {
  place: weighted(16, place),
  repeat: weighted(5, ({ key, call, option, detail, core }, model) => {
    const { body, campaign, requestId } = pickCall(model, call);
    const again = option % 6 === 0 ? { ...body, note: 'other' } : body;
    return placeRequest(pickKey(model, key), campaign, requestId, again, core, detail % 3);
  }),
  cancel: weighted(7, ({ key, call, option, detail, core }, model) => {
    const [found, { id, requestId, ...target }] = [pickKey(model, key), pickCall(model, call)];
    // Sometimes, this is a random campaign, which may not have the call.
    const campaign = option % 20 === 0 ? pick(listNodes(model, 'campaign'), call).id : target.campaign;
    const byRequest = detail % 3 === 0;
    return {
      text: `cancel ${requestId} by ${byRequest ? 'request' : 'contact'}`,
      send: (world) =>
        world.request(core, 'DELETE', `${toPath(campaign)}/${byRequest ? `by-request-id/${requestId}` : id}`, { key: found.value }),
      expect: (copy) => copy.cancel(found.id, campaign, byRequest ? copy.findCall(campaign, requestId) : copy.calls.get(id)),
    };
  }),
  /** Places a call, but hangs up before the response, at a random moment. Then places it again. */
  hangUp: weighted(1, (choice, model) => {
    const again = place(choice, model);
    return {
      text: `hang up, then ${again.text}`,
      async send(world) {
        const hangingUp = new AbortController();
        const sent = again.send(world, hangingUp.signal).catch(() => undefined);
        for (let turns = choice.option % 31; turns > 0; turns--) await turn();
        hangingUp.abort();
        await sent;
        return again.send(world);
      },
      // The first request may have placed the call.
      expect(copy, answer) {
        const { replayed: _, ...expected } = again.expect(copy, answer);
        return expected;
      },
    };
  }),
  outcome: weighted(10, ({ call, target, option, detail, core }, model) => {
    const { id, requestId } = option % 25 === 1 ? { id: 'none', requestId: 'no call' } : pickCall(model, call);
    const [optOut, isSigned, state] = [option % 10 === 0, detail % 16 !== 0, pick(outcomeStates, target)];
    const answeredBy = pick([null, ...answerers], detail);
    const report = { handoffId: id, state, ...(optOut && { optOut }), ...(answeredBy && { answeredBy }) };
    return {
      text: `outcome of ${requestId}: ${state}${answeredBy ? ` by ${answeredBy}` : ''}${optOut ? ' with an opt-out' : ''}`,
      send: (world) => world.report(core, report, isSigned ? undefined : `whsec_${'else'.repeat(10)}`),
      expect: (copy) => copy.reportOutcome(id, state, optOut, isSigned, answeredBy),
    };
  }),
  respond: weighted(4, ({ option }, model) => {
    const takes = option % 4 === 0;
    pick(listSilent(model), 0);
    return {
      text: `the silent provider ${takes ? 'takes' : "doesn't take"} what it has`,
      send: (world) => world.provider.answerSilent(takes),
      expect: (copy) => copy.respond(takes),
    };
  }),
  createKey: byUser(5, ({ option, detail }, model) => {
    const days = option % 6 === 0 ? Number.POSITIVE_INFINITY : 1 + (detail % 60);
    const toDate = () => new Date(model.now + days * day).toISOString().slice(0, 10);
    const expiration = days === Number.POSITIVE_INFINITY ? { kind: 'none' } : { kind: 'custom', date: toDate() };
    return {
      route: ['POST', '/console/api-keys', { name: `Key ${model.keys.size}`, expiration, timeZone: 'UTC' }],
      expect: (copy, by, answer) => copy.createKey(by, days, answer),
    };
  }),
  limitKey: byUser(4, ({ key: n, option, detail }, model) => {
    const elsewhere = model.keys.values().filter(({ isElsewhere }) => isElsewhere);
    const key = option % 4 === 0 ? pick(elsewhere, n) : pickKey(model, n);
    const [limits, asked] = key.isElsewhere
      ? [{ isElsewhere: false }, { addresses: detail % 2 === 0 ? null : ['127.0.0.0/8'] }]
      : detail % 4 === 0
        ? [{ isElsewhere: true }, { addresses: ['10.0.0.0/8', '2001:db8::/32'] }]
        : [{ callsPerDay: detail % 4 }, { callsPerDay: detail % 4 }];
    return {
      may: (viewer) => model.seesKey(viewer, key),
      route: ['PATCH', `/console/api-keys/${key.id}`, asked],
      expect: (copy, by) => copy.limitKey(by, key.id, limits),
    };
  }),
  revoke: byUser(2, ({ key: n, coin: cancels }, model) => {
    const silent = n % 3 === 0 ? listSilent(model) : [];
    const key = silent.length > 0 ? model.keys.require(pick(silent, n).key) : pickKey(model, n);
    return {
      may: (viewer) => model.seesKey(viewer, key),
      route: ['DELETE', `/console/api-keys/${key.id}?cancelQueuedCalls=${cancels}`],
      expect: (copy, by) => copy.revokeKey(by, key.id, cancels),
    };
  }),
  listNumber: byUser(2, ({ phone, call, coin }, model) => {
    const silent = coin ? listSilent(model) : [];
    const number = silent.length > 0 ? pick(silent, call).body.phone : toPhone(phone);
    return {
      route: ['POST', '/console/do-not-call', { phones: [number], reason: 'asked' }],
      expect: (copy, by) => copy.listNumber(by, number),
    };
  }),
  lift: byUser(1, ({ phone, option, core }, model) => {
    const nodes = listNodes(model, 'account', 'partner');
    const entries = nodes.flatMap(({ id, listed }) => [...listed].map((number) => ({ id, number })));
    const { id, number } = option % 4 === 0 ? { id: pick(nodes, phone).id, number: toPhone(phone) } : pick(entries, phone);
    const path = '/console/do-not-call';
    const search = `${path}?search=${encodeURIComponent(number)}`;
    return {
      route: ['GET', search],
      async send(world, by) {
        const found = await world.as(by, core, 'GET', search);
        const listed = found.status === 200 ? doNotCallSchema.parse(found.json).entries : [];
        const entry = listed.find(({ scope }) => scope.id === id);
        return entry ? world.as(by, core, 'DELETE', `${path}/${entry.id}`, { reason: 'asked again' }) : found;
      },
      expect: (copy, by) => copy.lift(by, number, id),
    };
  }),
  setOptOuts: byUser(1, ({ target, coin: optsOutForPartner }, model) => {
    const { id } = pick(listNodes(model, 'account'), target);
    return {
      route: ['PUT', `/console/accounts/${id}/opt-outs`, { listedFor: optsOutForPartner ? 'partner' : 'account' }],
      expect: (copy, by) => copy.setRules(by, id, { optsOutForPartner }),
    };
  }),
  setHours: byUser(1, ({ target, option }, model) => {
    const node = pick(model.directory.values(), target);
    const from = (option % 6) * 2;
    const hours = from < 6 ? null : { from: from * 60, to: 17 * 60 };
    const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
    const rules = hours ? [{ prefix: '', days, from: `${from}:00`.padStart(5, '0'), to: '17:00' }] : [];
    return setRules(node, 'calling-hours', { rules }, () => ({ hours }));
  }),
  stop: byUser(1, ({ target, option, detail }, model) => {
    // Otherwise, stopping waits for the silent provider.
    if (listSilent(model).length > 0) throw new Nothing();
    const node = option % 12 === 0 ? null : pick(model.directory.values(), target);
    const cancelQueuedCalls = detail % 4 === 0;
    return {
      may: (viewer) => node === null || model.isWithin(node.id, model.findScope(viewer)),
      route: ['POST', '/console/stops', { scope: node?.kind ?? 'server', ...(node && { id: node.id }), cancelQueuedCalls }],
      expect: (copy, by, answer) => copy.stop(by, node?.id ?? null, cancelQueuedCalls, answer),
    };
  }),
  resume: byUser(4, ({ target }, model) => {
    const stop = pick(model.stops.values(), target);
    return {
      may: (viewer) => model.mayResume(viewer, stop),
      route: ['DELETE', `/console/stops/${stop.id}`],
      expect: (copy, by) => copy.resume(by, stop.id),
    };
  }),
  /** Without a pace, no one remembers when the last call left. */
  setPace: byUser(2, ({ target, option, detail }, model) => {
    const node = pickRuled(model, target, ({ pace }) => pace !== null, 'account', 'campaign');
    const pace = { perSecond: pick([null, 0.1, 0.5], option), liveCalls: pick([null, 1, 3], detail) };
    const isNone = node.pace !== null || (pace.perSecond === null && pace.liveCalls === null);
    const none = { perSecond: null, liveCalls: null };
    return setRules(node, 'pace', isNone ? none : pace, ({ now }) => ({ pace: isNone ? null : { ...pace, since: now }, leftAt: 0 }));
  }),
  setContactLimits: byUser(2, ({ target, option, detail }, model) => {
    const node = pickRuled(model, target, ({ contactLimits }) => contactLimits !== null, 'partner', 'account', 'campaign');
    const limits = { calls: 1 + (option % 2), days: 1 + (detail % 3), minutesBetween: pick([0, 30, 600], option) };
    const contactLimits = node.contactLimits === null ? limits : null;
    return setRules(node, 'contact-limits', { limits: contactLimits }, () => ({ contactLimits }));
  }),
  setNumbers: byUser(1, ({ target, option, detail }, model) => {
    const node = pick(listNodes(model, 'account', 'partner'), target);
    const countries = pick([null, [], ['DE'], ['US', 'DE']], option);
    const kinds = pick([null, [], ['premium-rate' as const]], detail);
    return setRules(node, 'numbers', { countries, kinds }, () => ({ numbers: { countries, kinds } }));
  }),
  /** Creates or renames an account or campaign. */
  manage: byUser(1, ({ target, option }, model) => {
    const what = option % 10;
    const [kind, parent] = what === 0 || what > 5 ? (['account', 'partner'] as const) : (['campaign', 'account'] as const);
    const creates = what < 3 && listNodes(model, kind).length < most[kind];
    const node = pick(listNodes(model, creates ? parent : kind), target);
    const [name, path] = [`Name ${model.keys.size} ${target}`, `/console/directory/${kind}s`];
    return {
      may: (viewer) => model.manages(viewer, node.id),
      route: creates ? ['POST', path, { name, [`${parent}Id`]: node.id }] : ['PATCH', `${path}/${node.id}`, { name }],
      expect: (copy, by, answer) => (creates ? copy.create(by, node.id, name, answer) : copy.rename(by, node.id, name)),
    };
  }),
  signOut: byUser(1, () => ({ route: ['DELETE', '/console/session'], expect: (copy, by) => copy.signOut(by.user) })),
  changeFactor: weighted(1, async ({ viewer, core }, model, world) => {
    const by = pickViewer(model, viewer);
    const { email, lastCode } = model.users.require(by.user);
    const code = (await enter(model, world, by, core)) ? model.findNextCode(by.user) : null;
    if (code === null) throw new Nothing();
    const removes = lastCode !== null;
    return {
      text: `${email} ${removes ? 'removes' : 'sets up'} a second factor`,
      send: () =>
        removes
          ? world.as(by, core, 'DELETE', '/console/second-factor', { code: world.codeAt(by.user, code) })
          : world.enroll(by, core, code),
      expect(copy) {
        copy.users.change(by.user, { lastCode: removes ? null : code });
        return { status: removes ? 204 : 200 };
      },
    };
  }),
  disableUser: aboutUser(1, ({ id }, { coin: disabled }) => ({
    route: ['PATCH', `/console/users/${id}`, { disabled }],
    expect: (copy, by) => copy.disableUser(by, id, disabled),
  })),
  moveUser: aboutUser(2, (user, { option }, model) => {
    const accountId = pick([...listNodes(model, 'account'), null], option)?.id ?? null;
    return {
      may: (viewer) => model.seesUser(viewer, user) && model.isPartner(model.findScope(viewer)),
      route: ['PATCH', `/console/users/${user.id}`, { accountId }],
      expect: (copy, by) => copy.moveUser(by, user.id, accountId),
    };
  }),
  deleteUser: aboutUser(1, ({ id }, { coin: cancels }) => ({
    route: ['DELETE', `/console/users/${id}?cancelQueuedCalls=${cancels}`],
    expect: (copy, by) => copy.deleteUser(by, id, cancels),
  })),
} as const satisfies Readonly<Record<string, Command>>;
export type CommandName = keyof typeof commands;
export const commandNames = Object.keys(commands) as CommandName[];

export type Planned = { name: CommandName; choice: Choice };

/** Generates any of the commands, with the random numbers that its request is built from. */
export function anyRequest(names: readonly CommandName[] = commandNames): fc.Arbitrary<Planned> {
  const name = fc.oneof(...names.map((one) => ({ weight: commands[one].weight, arbitrary: fc.constant(one) })));
  return fc.record({ name, choice: anyChoice });
}

/** Builds a command's request. @param shared replaces some numbers of the choice, so that concurrent requests share them @throws Nothing */
export async function prepare({ name, choice }: Planned, model: Model, world: World, shared: Partial<Choice> = {}): Promise<Request> {
  return commands[name].build({ ...choice, ...shared }, model, world);
}
