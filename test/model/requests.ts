import fc from 'fast-check';
import { outcomeStates } from '#contract/calls/dialer.ts';
import { doNotCallSchema } from '#contract/protection/protection.ts';
import type { Answer } from '../support/http.ts';
import { type Body, type Call, type Model, premiumRate, type Zone } from './model.ts';
import { day, type Expected, type Key, second, type User, unauthorized, type Viewer } from './people.ts';
import type { World } from './world.ts';

/** A request to the cores, and what the model says about it. `expect` may be called on several copies of the model. */
export type Request = {
  text: string;
  /** Identifies the call that the request places. */
  places?: readonly [requestId: string, campaign: string];
  send(world: World): Promise<Answer>;
  expect(model: Model, answer: Answer): Expected;
};

/** Random numbers, from which each command chooses among what the model has. They're unrelated to each other. */
const n = fc.nat(999);
const numbers = { viewer: n, key: n, campaign: n, call: n, phone: n, window: n, zone: n, target: n, option: n, detail: n, core: n };
export type Choice = Readonly<Record<keyof typeof numbers, number>>;
/** When a walk fails, commands are removed from it, but these numbers aren't made smaller: a shorter walk is easier to understand. */
export const anyChoice: fc.Arbitrary<Choice> = fc.noShrink(fc.record(numbers));

/** Builds a request; null if the model has nothing to apply it to. */
export type Command = (choice: Choice, model: Model, world: World) => Promise<Request | null> | Request | null;

export function pick<Item>(items: Iterable<Item>, n: number): Item | undefined {
  const all = [...items];
  return all[n % all.length];
}

// Who sends a request, and which data it's about

/** Returns every user, and each staff user with every account and partner selected, and with none. */
export function listViewers(model: Model): Viewer[] {
  const scopes = [...model.accounts].flatMap(([account, { partner }]) => [account, null].map((one) => ({ account: one, partner })));
  return [...model.users.values()].flatMap(({ id: user, type }) =>
    (type === 'staff' ? [...scopes, null] : [null]).map((tenancy) => ({ user, tenancy })),
  );
}

/** Picks a viewer, often one who's allowed to send the request, and usually one who's signed in, because signing in takes a while. */
export function pickViewer(model: Model, n: number, may: (viewer: Viewer) => boolean = () => true): Viewer {
  const all = listViewers(model);
  const isIn = (viewer: Viewer) => model.isSignedIn(viewer);
  const [allowed, signedIn] = [all.filter(may), all.filter(isIn)];
  const chosen = [allowed.filter(isIn), allowed, signedIn, all].slice([3, 2, 1][n % 6] ?? 0).find((some) => some.length > 0);
  // First a user, because staff have many scopes.
  const ofUsers = [...Map.groupBy(chosen ?? [], ({ user }) => user).values()];
  const viewer = pick(pick(ofUsers, n >> 3) ?? [], n);
  if (!viewer) throw new Error('The model has no users.');
  return viewer;
}

/** Signs the viewer in if their session has ended. @returns whether they're signed in, which a disabled user can't be */
export async function enter(model: Model, world: World, viewer: Viewer, core: number): Promise<boolean> {
  const user = model.users.get(viewer.user);
  if (!user) return false;
  if (!model.isSignedIn(viewer)) {
    const code = user.lastCode === null ? null : model.findNextCode(viewer);
    if (user.isDisabled || (user.lastCode !== null && code === null)) return false;
    const status = await world.signIn(core, user, code);
    if (status !== 201) throw new Error(`${user.email} should be able to sign in, but got ${status}.`);
    model.signIn(viewer, code);
  }
  model.use(viewer);
  return true;
}

/** Picks one of the newest keys, usually one that works. A sixth are keys that have worked, because a core may remember them. */
const newestKeys = 8;
function pickKey(model: Model, n: number): Key | undefined {
  const all = [...model.keys.values()];
  const active = all.filter((key) => model.isActive(key));
  const isPaused = ({ isElsewhere, creator }: Key) => isElsewhere || model.users.get(creator)?.isDisabled;
  const paused = all.filter((key) => key.placed.size > 0 && !key.revoked && isPaused(key));
  const chosen = [paused, active, all].slice([2, 0][n % 6] ?? 1).find((keys) => keys.length > 0);
  return pick((chosen ?? []).slice(-newestKeys), n >> 2);
}

/** Picks a campaign, usually one that the key has access to. */
function pickCampaign(model: Model, key: Key, n: number): string {
  const all = [...model.campaigns.keys()];
  const reached = n % 6 === 0 || !model.users.has(key.creator) ? [] : all.filter((id) => model.hasAccess(key, id));
  return pick(reached.length > 0 ? reached : all, n >> 2) ?? '';
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

/** Campaigns, accounts and partners, with the kind of each. */
function listTargets(model: Model): (readonly [kind: 'campaign' | 'account' | 'partner', id: string])[] {
  const partners = new Set([...model.accounts.values()].map(({ partner }) => partner));
  return [
    ...[...model.campaigns.keys()].map((id) => ['campaign', id] as const),
    ...[...model.accounts.keys()].map((id) => ['account', id] as const),
    ...[...partners].map((id) => ['partner', id] as const),
  ];
}

// Integrators

/** Time windows for calls, in seconds from now. The empty one is the most frequent. */
const windows = '/ / / / / / 60/ 600/7200 /90 /36000 -60/3600 /-1 86400/172800'.split(' ').map((window) => {
  const [notBefore = null, notAfter = null] = window.split('/').map((seconds) => (seconds === '' ? null : Number(seconds)));
  return { notBefore, notAfter };
});
const zoneNames: readonly Zone[] = ['UTC', 'UTC', 'Asia/Kolkata', 'Asia/Tokyo', 'America/Phoenix'];

const toPath = (campaign: string) => `/api/v1/campaigns/${campaign}/contacts/on-demand`;

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

function placeRequest({ id, value }: Key, campaign: string, requestId: string, body: Body, core: number, spelling = 0): Request {
  return {
    places: [requestId, campaign],
    text: `place ${requestId} to ${body.phone}${body.notBefore || body.notAfter ? ' in a window' : ''}`,
    send: (world) =>
      world.request(core, 'POST', toPath(campaign), {
        key: value,
        body: toJson(body, requestId, spelling),
        ...(spelling === 2 ? { headers: { 'Idempotency-Key': `"${requestId}"` } } : {}),
      }),
    expect: (model, answer) => model.place(id, campaign, requestId, body, answer),
  };
}

const place: Command = ({ key, campaign, phone, window, zone, detail, target, core }, model) => {
  const found = pickKey(model, key);
  if (!found) return null;
  const { notBefore, notAfter } = pick(windows, window) ?? { notBefore: null, notAfter: null };
  const at = (seconds: number | null) => (seconds === null ? null : model.now + seconds * second);
  const inWindow = { notBefore: at(notBefore), notAfter: at(notAfter) };
  const body = { phone: toPhone(phone), zone: pick(zoneNames, zone) ?? 'UTC', ...inWindow, note: detail % 4 ? '' : 'x' };
  return placeRequest(found, pickCampaign(model, found, campaign), `r${target % 400}`, body, core);
};

/** Places a call that isn't due before the next day, usually with a key that has a limit. */
export function placeLater({ key, campaign, phone, target, core }: Choice, model: Model): Request | null {
  const limited = [...model.keys.values()].filter((one) => one.callsPerDay !== null && model.isActive(one));
  const found = pick(limited, key) ?? pickKey(model, key);
  if (!found) return null;
  const body = { phone: toPhone(phone), zone: 'UTC', notBefore: model.now + 2 * day, notAfter: null, note: '' } as const;
  return placeRequest(found, pickCampaign(model, found, campaign), `e${target}`, body, core);
}

const repeat: Command = ({ key, call, option, detail, core }, model) => {
  const [found, again] = [pickKey(model, key), pickCall(model, call)];
  if (!found || !again) return null;
  const body = option % 6 === 0 ? { ...again.body, note: 'other' } : again.body;
  return placeRequest(found, again.campaign, again.requestId, body, core, detail % 3);
};

const cancel: Command = ({ key, call, option, detail, core }, model) => {
  const [found, target] = [pickKey(model, key), pickCall(model, call)];
  if (!found) return null;
  // Sometimes, the campaign doesn't have the call.
  const campaign = option % 20 === 0 || !target ? (pick(model.campaigns.keys(), call) ?? '') : target.campaign;
  const [id, requestId, byRequest] = [target?.id ?? 'none', target?.requestId ?? 'none', detail % 3 === 0];
  return {
    text: `cancel ${requestId} by ${byRequest ? 'request' : 'contact'}`,
    send: (world) =>
      world.request(core, 'DELETE', `${toPath(campaign)}/${byRequest ? `by-request-id/${requestId}` : id}`, { key: found.value }),
    expect: (copy) => copy.cancel(found.id, campaign, byRequest ? copy.findCall(campaign, requestId) : copy.calls.get(id)),
  };
};

const hangUp: Command = ({ key, campaign, target, phone, option, core }, model) => {
  const found = pickKey(model, key);
  if (!found) return null;
  const at = pickCampaign(model, found, campaign);
  const [requestId, body] = [`h${target}`, { phone: toPhone(phone), zone: 'UTC', notBefore: null, notAfter: null, note: '' } as const];
  const again = placeRequest(found, at, requestId, body, core);
  return {
    text: `hang up, then ${again.text}`,
    async send(world) {
      await world.hangUp(core, toPath(at), found.value, toJson(body, requestId), option % 31);
      return again.send(world);
    },
    // The first request may have placed the call.
    expect(copy, answer) {
      const { replayed: _, ...expected } = again.expect(copy, answer);
      return expected;
    },
  };
};

// The provider

const outcome: Command = ({ call, target, option, detail, core }, model) => {
  const id = pickCall(model, call)?.id ?? 'none';
  const [optsOut, isSigned, state] = [option % 10 === 0, detail % 16 !== 0, pick(outcomeStates, target) ?? 'busy'];
  return {
    text: `outcome of ${model.calls.get(id)?.requestId}: ${state}${optsOut ? ' with an opt-out' : ''}`,
    send: (world) =>
      world.report(
        core,
        { handoffId: id, state, ...(optsOut ? { optOut: true } : {}) },
        ...(isSigned ? [] : [`whsec_${'else'.repeat(10)}`]),
      ),
    expect: (copy) => copy.reportOutcome(id, state, optsOut, isSigned),
  };
};

const respond: Command = ({ option }, model) => {
  const takes = option % 4 === 0;
  if (!model.calls.values().some(({ stage }) => stage === 'open')) return null;
  return {
    text: `the silent provider ${takes ? 'takes' : "doesn't take"} what it has`,
    send: (world) => world.answerSilent(takes),
    expect: (copy) => copy.respond(takes),
  };
};

// Users of the console

type UserRequest = {
  route: readonly [method: string, path: string, body?: object];
  /** Whether a viewer is probably allowed to send the request. */
  may?: (viewer: Viewer) => boolean;
  /** Whether the model knows what happens if this viewer sends the request. */
  isKnown?: (viewer: Viewer) => boolean;
  /** Replaces the request to the route. */
  send?: (world: World, by: Viewer) => Promise<Answer>;
  expect(model: Model, by: Viewer, answer: Answer): Expected;
};

/** Builds a request by a user, whose session may have ended. */
function byUser(describe: (choice: Choice, model: Model) => UserRequest | null): Command {
  return async (choice, model, world) => {
    const asked = describe(choice, model);
    if (!asked) return null;
    const by = pickViewer(model, choice.viewer, asked.may);
    if (asked.isKnown?.(by) === false) return null;
    if (model.isSignedIn(by) || choice.detail % 4 > 0) await enter(model, world, by, choice.core);
    const [method, path, body] = asked.route;
    return {
      text: `${model.users.get(by.user)?.email.split('@')[0]}: ${method} ${path}`,
      send: () => (asked.send ? asked.send(world, by) : world.as(by, choice.core, method, path, body)),
      expect: (copy, answer) => (copy.isSignedIn(by) ? asked.expect(copy, by, answer) : unauthorized),
    };
  };
}

const createKey = byUser(({ option, detail }, model) => {
  const days = option % 6 === 0 ? null : 1 + (detail % 60);
  const date = new Date(model.now + (days ?? 0) * day).toISOString().slice(0, 10);
  const expiration = days === null ? { kind: 'none' } : { kind: 'custom', date };
  return {
    route: ['POST', '/console/api-keys', { name: `Key ${model.keys.size}`, expiration, timeZone: 'UTC' }],
    expect: (copy, by, answer) => copy.createKey(by, days, answer),
  };
});

/** Builds a request about one of the keys. */
function aboutKey(
  choose: (choice: Choice, model: Model) => Key | undefined,
  describe: (key: Key, choice: Choice) => Omit<UserRequest, 'may'>,
): Command {
  return byUser((choice, model) => {
    const key = choose(choice, model);
    return key ? { may: (viewer) => model.seesKey(viewer, key), ...describe(key, choice) } : null;
  });
}

const limitKey = aboutKey(
  ({ key, option }, model) =>
    option % 4 === 0
      ? pick(
          model.keys.values().filter(({ isElsewhere }) => isElsewhere),
          key,
        )
      : pickKey(model, key),
  ({ id, isElsewhere }, { detail }) => {
    const [limits, asked] = isElsewhere
      ? [{ isElsewhere: false }, { addresses: detail % 2 === 0 ? null : ['127.0.0.0/8'] }]
      : detail % 4 === 0
        ? [{ isElsewhere: true }, { addresses: ['10.0.0.0/8', '2001:db8::/32'] }]
        : [{ callsPerDay: detail % 4 }, { callsPerDay: detail % 4 }];
    return { route: ['PATCH', `/console/api-keys/${id}`, asked], expect: (copy, by) => copy.limitKey(by, id, limits) };
  },
);

const revoke = aboutKey(
  ({ key }, model) => {
    // Often, the provider is still silent about one of the key's calls.
    const open = [...model.calls.values()].filter(({ stage }) => stage === 'open');
    return model.keys.get(key % 3 === 0 ? (pick(open, key)?.key ?? '') : '') ?? pickKey(model, key);
  },
  ({ id }, { option }) => {
    const cancels = option % 2 === 0;
    return {
      route: ['DELETE', `/console/api-keys/${id}?cancelQueuedCalls=${cancels}`],
      expect: (copy, by) => copy.revokeKey(by, id, cancels),
    };
  },
);

const listNumber = byUser(({ phone, call, option }, model) => {
  // Often, the provider is still silent about a call to the number.
  const open = model.calls.values().filter(({ stage }) => stage === 'open');
  const number = (option % 2 === 0 ? pick(open, call)?.body.phone : undefined) ?? toPhone(phone);
  return {
    route: ['POST', '/console/do-not-call', { phones: [number], reason: 'asked' }],
    expect: (copy, by) => copy.listNumber(by, number),
  };
});

const lift = byUser(({ phone, option, core }, model) => {
  const listed = [...model.listed.values()].flatMap((numbers) => [...numbers]);
  const number = (option % 4 === 0 ? undefined : pick(listed, phone)) ?? toPhone(phone);
  const path = '/console/do-not-call';
  const search = `${path}?search=${encodeURIComponent(number)}`;
  let scope: string | null = null;
  return {
    isKnown: (viewer) => model.findScope(viewer)?.account === null,
    route: ['GET', search],
    async send(world, by) {
      const found = await world.as(by, core, 'GET', search);
      const [entry] = found.status === 200 ? doNotCallSchema.parse(found.json).entries : [];
      if (!entry) return found;
      scope = entry.scope.id;
      return world.as(by, core, 'DELETE', `${path}/${entry.id}`, { reason: 'asked again' });
    },
    expect: (copy, by) => copy.lift(by, number, scope),
  };
});

const setOptOuts = byUser(({ target, option }, model) => {
  const id = pick(model.accounts.keys(), target) ?? '';
  const listedFor = option % 2 === 0 ? 'partner' : 'account';
  return {
    route: ['PUT', `/console/accounts/${id}/opt-outs`, { listedFor }],
    expect: (copy, by) => copy.setOptOuts(by, id, listedFor === 'partner'),
  };
});

const setHours = byUser(({ target, option }, model) => {
  const [kind, id] = pick(listTargets(model), target) ?? ['campaign', ''];
  const time = (at: number) => `${String(Math.floor(at / 60)).padStart(2, '0')}:${String(at % 60).padStart(2, '0')}`;
  const hours = option % 6 < 3 ? null : { from: (option % 6) * 120, to: 1_020 };
  const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
  const rules = hours ? [{ prefix: '', days, from: time(hours.from), to: time(hours.to) }] : [];
  return {
    route: ['PUT', `/console/calling-hours?scope=${kind}&id=${id}`, { rules }],
    expect: (copy, by) => copy.setRules(by, id, { hours }),
  };
});

const setNumbers = byUser(({ target, option, detail }, model) => {
  const targets = listTargets(model).filter(([kind]) => kind !== 'campaign');
  const [kind, id] = pick(targets, target) ?? ['account', ''];
  const countries = pick([null, [], ['DE'], ['US', 'DE']], option) ?? null;
  const kinds = pick([null, [], ['premium-rate' as const]], detail) ?? null;
  return {
    route: ['PUT', `/console/numbers?scope=${kind}&id=${id}`, { countries, kinds }],
    expect: (copy, by) => copy.setRules(by, id, { numbers: { countries, kinds } }),
  };
});

const manage = byUser(({ target, option }, model) => {
  const [account, { partner } = { partner: '' }] = pick(model.accounts, target) ?? [''];
  const name = `Name ${model.keys.size} ${target}`;
  const [may, at] = [(viewer: Viewer) => model.manages(viewer, partner), '/console/directory'] as const;
  const what = option % 10;
  // Every list is compared for every campaign.
  if (what === 0 && model.accounts.size < 6)
    return {
      may,
      route: ['POST', `${at}/accounts`, { name, partnerId: partner }],
      expect: (copy, by, answer) => copy.create(by, partner, name, answer),
    };
  if (what < 3 && model.campaigns.size < 8)
    return {
      may,
      route: ['POST', `${at}/campaigns`, { name, accountId: account }],
      expect: (copy, by, answer) => copy.create(by, account, name, answer),
    };
  const campaign = what < 6 ? pick(model.campaigns.keys(), target) : undefined;
  const path = campaign === undefined ? `${at}/accounts/${account}` : `${at}/campaigns/${campaign}`;
  return { may, route: ['PATCH', path, { name }], expect: (copy, by) => copy.rename(by, campaign ?? account, name) };
});

const signOut = byUser(() => ({ route: ['DELETE', '/console/session'], expect: (copy, by) => copy.signOut(by) }));

const changeFactor: Command = async ({ viewer, core }, model, world) => {
  const by = pickViewer(model, viewer);
  const isEnrolled = model.users.get(by.user)?.lastCode !== null;
  const code = (await enter(model, world, by, core)) ? model.findNextCode(by) : null;
  if (code === null) return null;
  return {
    text: `${model.users.get(by.user)?.email} ${isEnrolled ? 'removes' : 'sets up'} a second factor`,
    send: () => (isEnrolled ? world.removeFactor(by, core, code) : world.enroll(by, core, code)),
    expect: (copy) => copy.setFactor(by, isEnrolled ? null : code),
  };
};

/** Builds a request about one of the users, except staff. */
function aboutUser(describe: (user: User, choice: Choice, model: Model) => UserRequest): Command {
  return byUser((choice, model) => {
    const users = model.users.values().filter(({ type }) => type !== 'staff');
    const user = pick(users, choice.target);
    return user ? { may: (viewer) => model.seesUser(viewer, user), ...describe(user, choice, model) } : null;
  });
}

const disableUser = aboutUser(({ id }, { option }) => {
  const disabled = option % 2 === 0;
  return { route: ['PATCH', `/console/users/${id}`, { disabled }], expect: (copy, by) => copy.disableUser(by, id, disabled) };
});

const moveUser = aboutUser((user, { option }, model) => {
  const accountId = pick([...model.accounts.keys(), null], option) ?? null;
  return {
    may: (viewer) => model.seesUser(viewer, user) && model.findScope(viewer)?.account === null,
    route: ['PATCH', `/console/users/${user.id}`, { accountId }],
    expect: (copy, by) => copy.moveUser(by, user.id, accountId),
  };
});

const deleteUser = aboutUser(({ id }, { option }) => {
  const cancels = option % 2 === 0;
  return {
    route: ['DELETE', `/console/users/${id}?cancelQueuedCalls=${cancels}`],
    expect: (copy, by) => copy.deleteUser(by, id, cancels),
  };
});

/** Each command with how often it's chosen, compared with the other commands. */
const commands = {
  ...{ place: [16, place], repeat: [5, repeat], cancel: [7, cancel], hangUp: [1, hangUp], outcome: [10, outcome], respond: [4, respond] },
  ...{ createKey: [5, createKey], limitKey: [4, limitKey], revoke: [2, revoke], listNumber: [2, listNumber], lift: [1, lift] },
  ...{ setOptOuts: [1, setOptOuts], setHours: [1, setHours], setNumbers: [1, setNumbers], manage: [1, manage], signOut: [1, signOut] },
  ...{ changeFactor: [1, changeFactor], disableUser: [1, disableUser], moveUser: [2, moveUser], deleteUser: [1, deleteUser] },
} as const satisfies Readonly<Record<string, readonly [weight: number, Command]>>;
export type CommandName = keyof typeof commands;

/** A command with its choice. */
export type Planned = { name: string; prepare(model: Model, world: World, shared?: Partial<Choice>): Promise<Request | null> };

/** Any of the commands. `prepare` can replace some numbers of the choice, so that concurrent requests share them. */
export function anyRequest(isChosen: (name: string) => boolean = () => true): fc.Arbitrary<Planned> {
  const chosen = Object.entries(commands).filter(([name]) => isChosen(name));
  const toPlanned = (name: string, command: Command) => (choice: Choice) => ({
    name,
    prepare: async (model: Model, world: World, shared: Partial<Choice> = {}) => command({ ...choice, ...shared }, model, world),
  });
  return fc.oneof(...chosen.map(([name, [weight, command]]) => ({ weight, arbitrary: anyChoice.map(toPlanned(name, command)) })));
}
