import { type ConsoleRoutes, consoleRoutes } from '#contract/routes.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { fakeClock } from './clock.ts';
import { openCore, type RunningCore, startCoreHere } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { ask, readCookies } from './http.ts';
import { openOnce } from './suites.ts';
import { enroll, password, signIn } from './tenants.ts';

const environment = { TRUSTED_PROXIES: '127.0.0.1' };

/** Sends an empty request to every route of the console that requires a session, except one. */
export async function tryRoutes(url: string, cookie: string, except: keyof ConsoleRoutes | null = 'signOut') {
  const answers: { route: string; status: number; text: string }[] = [];
  for (const [route, { by, method, path }] of Object.entries(consoleRoutes)) {
    if (by !== 'session' || route === except) continue;
    const body = method === 'GET' ? {} : { body: {} };
    const { status, text } = await ask(method, url + path.replace(/:\w+/g, 'x'), { cookie, ...body });
    answers.push({ route, status, text });
  }
  return answers;
}

/** Opens a core before the tests of a suite, and closes it after them. */
const openSuite = (kind: DatabaseKind) =>
  openOnce(async () => {
    const clock = fakeClock();
    return { ...(await openCore({ kind, clock, environment })), clock };
  });

/** @returns the suite's core, and functions that sign users in there */
export function sessionSuite(kind: DatabaseKind = 'sqlite') {
  const harness = openSuite(kind);
  return Object.assign(harness, {
    session: (cookie: string) => ask('GET', `${harness.core.url}/console/session`, { cookie }),
    tryPassword: (email: string, attempt: string, headers: Record<string, string> = {}, cookie?: string) =>
      ask('POST', `${harness.core.url}/console/session`, {
        body: { email, password: attempt },
        headers,
        ...(cookie === undefined ? {} : { cookie }),
      }),
  });
}

/** @returns the suite's core, and functions that sign users in there with codes */
export function secondFactorSuite(kind: DatabaseKind = 'sqlite') {
  const harness = openSuite(kind);

  const others: RunningCore[] = [];
  /** Starts another core on the same database. It runs until the end of the test. */
  async function startAnother(more: Record<string, string> = {}): Promise<RunningCore> {
    const other = await startCoreHere(harness.database, { clock: harness.clock, environment: { ...environment, ...more } });
    others.push(other);
    return other;
  }
  async function closeOthers(): Promise<void> {
    for (const other of others.splice(0)) await other.close();
  }
  afterEach(closeOthers);

  /** Throttle counters are per address, so each attempt comes from its own address unless a test counts attempts. */
  let addresses = 0;
  const elsewhere = () => `198.51.${++addresses >> 8}.${addresses & 255}`;

  type From = { at?: RunningCore; from?: string; cookie?: string };
  const asked = ({ from = elsewhere(), cookie }: From) => ({
    headers: { 'X-Forwarded-For': from },
    ...(cookie === undefined ? {} : { cookie }),
  });
  const tryPassword = (email: string, attempt = password, { at = harness.core, ...from }: From = {}) =>
    ask('POST', `${at.url}/console/session`, { body: { email, password: attempt }, ...asked(from) });
  const enterCode = (cookie: string, code: string, { at = harness.core, ...from }: From = {}) =>
    ask('POST', `${at.url}/console/session/second-factor`, { body: { code }, ...asked({ ...from, cookie }) });
  const inSession = (method: string, path: string, cookie: string, body?: object) =>
    ask(method, harness.core.url + path, { cookie, ...(body === undefined ? {} : { body }) });
  const readStatus = async (cookie: string) => (await inSession('GET', '/console/session', cookie)).status;
  const halfOpen = async (email: string, from: From = {}) => readCookies(await tryPassword(email, password, from));
  const signInWith = async (email: string, code: string, from: From = {}) => enterCode(await halfOpen(email, from), code, from);

  let users = 0;
  async function newUserWithout() {
    const email = `second-${++users}@example.com`;
    const input = { email, name: `Second ${users}`, userType: 'staff', accountId: null, partnerId: null } as const;
    const { user } = await createUser(harness.direct.ports, operator, input, password);
    return { email, user, id: user.id, cookie: await signIn(harness.core.url, email) };
  }
  /** Creates a new staff user with a second factor, signed in. */
  async function newUser() {
    const created = await newUserWithout();
    return { ...created, ...(await enroll(harness.core.url, created.cookie, harness.clock)) };
  }
  const tables = () => harness.direct.storage.database;
  const listActions = async (id: string): Promise<string[]> =>
    tables().read('audit_events').where({ subject_id: id }).orderBy('id').pluck('action');

  return Object.assign(harness, {
    ...{ tables, startAnother, closeOthers, elsewhere, newUser, newUserWithout, listActions },
    ...{ tryPassword, enterCode, inSession, readStatus, halfOpen, signInWith },
  });
}
