import { z } from 'zod';
import { type SessionView, secondFactorNeededSchema, sessionRoutes, sessionSchema, tenancyHeader } from '#contract/console/session.ts';
import { generation, generationHeader } from '#contract/contract-generation.ts';
import { findKeyValues, hasMistypedKey } from '#contract/key-value.ts';
import { parseRetryAfter } from '#contract/parse-retry-after.ts';
import { type ProblemCode, problemCode, problemMediaType, problemSchema } from '#contract/problems.ts';
import { parameterNames, pathTo, type Route } from '#contract/route.ts';
import { type ConsoleRoutes, consoleRoutes } from '#contract/routes.ts';
import { parseJson } from '#contract/text/json.ts';
import {
  type BridgeFunctions,
  type ExportName,
  type ExportRequest,
  type Failure,
  type RequestAnswer,
  type RequestInput,
  type RequestName,
  type Result,
  refusal,
  type SignIn,
  type SignInAnswer,
} from './ipc.ts';

/** @property schema validates the response and returns its value */
type CoreRequest<Value> = Pick<Route, 'method' | 'path'> & { schema: z.ZodType<Value>; body?: unknown };
export type Send = <Value>(request: CoreRequest<Value>) => Promise<Result<Value>>;

type Fields = Readonly<Record<string, unknown>>;

/** The schema for a response that has no body, or whose body isn't needed. */
const nothing = z.unknown().transform(() => null);

export const requestNames = Object.entries<Route>(consoleRoutes).flatMap(([name, { by, answer }]) =>
  by === 'session' && answer !== 'csv' && name !== 'signOut' ? [name as RequestName] : [],
);

export const exportNames = Object.entries<Route>(consoleRoutes).flatMap(([name, { answer }]) =>
  answer === 'csv' ? [name as ExportName] : [],
);

export function exportPath({ name, input }: ExportRequest): string {
  const route: Route = consoleRoutes[name];
  return pathTo(route, { ...input }) + toQuery(toFields(route, { ...input }).query);
}

/** Splits the input into a route's query, without empty fields, and its body. The other fields are parameters of the path. */
export function toFields({ path, query, body }: Route, input: Fields): { query: Fields; body: Fields } {
  const names = parameterNames(path);
  const fields = Object.entries(input).filter(([name]) => !names.includes(name));
  // If a route has both a query and a body, the body takes the fields that aren't in the query.
  const isInQuery = (name: string) => query !== undefined && (body === undefined || name in query.shape);
  return {
    query: Object.fromEntries(fields.filter(([name, value]) => isInQuery(name) && value !== null && value !== '')),
    body: Object.fromEntries(fields.filter(([name]) => !isInQuery(name))),
  };
}

export function coreRequest<Name extends keyof ConsoleRoutes>(name: Name, input: RequestInput<Name>): CoreRequest<RequestAnswer<Name>>;
export function coreRequest(name: keyof ConsoleRoutes, input: Fields): CoreRequest<unknown> {
  const route: Route = consoleRoutes[name];
  const { method, body, answer } = route;
  const fields = toFields(route, input);
  return {
    method,
    path: pathTo(route, input) + toQuery(fields.query),
    schema: answer === undefined || answer === 'csv' ? nothing : answer,
    ...(body && { body: fields.body }),
  };
}

function toQuery(fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) for (const each of [value ?? []].flat()) query.append(name, String(each));
  return query.size === 0 ? '' : `?${query}`;
}

/** A response from the core, or from another server that responded in its place. */
export type Answer = {
  status: number;
  /** @param name in lowercase; undefined if the response doesn't have this header */
  header(name: string): string | undefined;
  text: string;
};

/** Returns how many milliseconds this computer's clock is ahead of the server's, from the `Date` header of a response. */
export function computeClockLead(date: string | undefined): number | null {
  const lead = Date.now() - Date.parse(date ?? '');
  return Number.isNaN(lead) ? null : lead;
}

export function readAnswer<Value>(answer: Answer, schema: z.ZodType<Value>): Result<Value> {
  const failure = findFailure(answer);
  if (failure) return failure;
  const parsed = schema.safeParse(parseJson(answer.text));
  return parsed.success ? { ok: true, value: parsed.data } : failed({ kind: 'unreachable', detail: unreadable });
}

export function failed(failure: Failure): Result<never> {
  return { ok: false, failure };
}

const unreadable = 'Its response can’t be read. Check any proxy in front of the server, and ask its operator.';

/** Returns the failure in a response; null if the request succeeded. A response that has no sign of a core isn't from one. */
export function findFailure(answer: Answer): Result<never> | null {
  const { status, header, text } = answer;
  if (status >= 200 && status < 300) return generationMismatch(answer);
  const problem = header('content-type')?.startsWith(problemMediaType) ? problemSchema.safeParse(parseJson(text)) : null;
  const code = problem?.success ? problemCode(problem.data.type) : undefined;
  if (!problem?.success || !code) return foreign(answer);
  if (code === 'unauthorized') return failed({ kind: 'session-ended' });
  const { detail, errors = [], instance } = problem.data;
  return failed({
    kind: 'refused',
    code,
    detail: instance === undefined ? detail : `${detail} (${instance})`,
    errors,
    retryAfterSeconds: Math.ceil(parseRetryAfter(header('retry-after'), Date.now()) / 1_000) || null,
  });
}

function generationMismatch(answer: Answer): Result<never> | null {
  const header = answer.header(generationHeader.toLowerCase()) ?? '';
  if (header === String(generation)) return null;
  return /^\d{1,9}$/.test(header)
    ? failed({ kind: 'incompatible', core: Number(header) < generation ? 'older' : 'newer' })
    : foreign(answer);
}

function foreign(answer: Answer): Result<never> {
  const isOther = answer.status < 500 && answer.status !== 429;
  return failed({ kind: 'unreachable', detail: describeForeignResponse(answer), ...(isOther && { isOther }) });
}

/** Says what responded in place of a core, and what to do. Quotes only the origin of a redirect, because an attacker can choose the rest. */
function describeForeignResponse({ status, header, text }: Answer): string {
  if (status >= 300 && status < 400) return describeRedirect(header('location'));
  if (/plain HTTP request was sent to HTTPS port|HTTP request to an HTTPS server/i.test(text))
    return 'This port requires HTTPS. Use an address that starts with https://.';
  if (status >= 500 || status === 429) return `The proxy in front of the server returned ${status}. Check that the server is running.`;
  if (status === 401 || status === 407 || header('www-authenticate') !== undefined)
    return `A proxy or another kind of server responded (${status}) and requires its own sign-in. Check the address, or ask your administrator for one without this sign-in.`;
  const isPage = /^text\/html|^application\/xhtml/i.test(header('content-type') ?? '') || /^\s*<(?:!doctype|html)/i.test(text);
  if (isPage && /type=["']?password/i.test(text))
    return `A sign-in page responded instead of a Callkey server. It may belong to your network, a proxy or another device. Open the address in a browser: if you recognize the page, sign in there, then try again. Otherwise, check the address.`;
  if (status === 404)
    return 'There’s no Callkey server at this address (404). Check the address. If the server is under a path, such as https://example.com/callkey, include it.';
  if (isPage && status < 300)
    return 'A web page responded instead of a Callkey server. If it’s being maintained, wait. If your network has a sign-in page, open that first. Otherwise, check the address and the port.';
  return `This isn’t a Callkey server, but something else that returned ${status}. Check the address, the port and any proxy in between.`;
}

function describeRedirect(location: string | undefined): string {
  const origin = location === undefined ? undefined : URL.parse(location)?.origin;
  const target = origin === undefined || origin === 'null' ? 'another page' : origin;
  return `The server redirects to ${target}. If that’s a sign-in page of your network or company, sign in there in a browser, then try again. Otherwise, use the address that it redirects to.`;
}

/** Explains why a server that returns a core's errors doesn't say how to sign in, which every core of this generation does. */
export function explainIdentity(failure: Failure, address: string): Failure {
  const { origin, pathname } = new URL(address);
  if (failure.kind === 'session-ended')
    return pathname === '/'
      ? { kind: 'incompatible', core: 'older' }
      : { kind: 'unreachable', isOther: true, detail: `A Callkey server responded, but not under this path. Try ${origin}` };
  if (failure.kind === 'refused' && ['not-found', 'method-not-allowed', 'malformed-request'].includes(failure.code))
    return {
      kind: 'unreachable',
      isOther: true,
      detail:
        'This is the management address of a Callkey server, where no one can sign in. Enter the address of the server itself, which has another port.',
    };
  return failure;
}

type Headers = Readonly<Record<string, string>>;
type SendWith = <Value>(request: CoreRequest<Value>, headers: Headers) => Promise<Result<Value>>;
/** @property headers for a request that isn't sent through `send` */
type InTenancy = { send: Send; headers: () => Headers; setTenancy: (shown: RequestInput<'selectTenancy'>) => void };

/** The core's responses if the tenancy in the header is gone, or isn't one of the user's. Others, such as a 503, say nothing about it. */
const noAccess: readonly ProblemCode[] = ['forbidden', 'not-found', 'malformed-request'];

/**
 * With each request, sends the account or partner that the page shows. Another tab can select a different one in the same session, but this
 * page must not read or change anything there. Only the page says what it shows: responses may arrive late, or the page may ignore them.
 */
export function withTenancyHeader(send: SendWith): InTenancy {
  let headers: Headers = {};
  const { showSession, selectTenancy } = sessionRoutes;
  const sendIn: Send = async (request) => {
    const isAboutSession = request.path === showSession.path || request.path === selectTenancy.path;
    const isShown = isAboutSession && request.method === 'GET';
    const sent = isAboutSession && !isShown ? {} : headers;
    const result = await send(request, sent);
    if (!isShown) return result;
    // The response is about a tenancy that the page no longer shows.
    if (sent !== headers) return sendIn(request);
    // Someone else may have signed in, or the account may be gone. Ask again without the header to get the session's own selection.
    return !result.ok && result.failure.kind === 'refused' && noAccess.includes(result.failure.code) ? send(request, {}) : result;
  };
  return {
    send: sendIn,
    headers: () => headers,
    setTenancy(shown) {
      headers = shown.kind === null ? {} : { [tenancyHeader]: `${shown.kind}/${shown.id}` };
    },
  };
}

type Exchange = (request: CoreRequest<unknown>, headers: Headers) => Promise<Answer>;

/** Enough responses for the screens that a user returns to. A list of 500 keys takes 150 KB. */
const max = 30;

/** Sends the last response's ETag with a request, and returns that response again if the core says that it hasn't changed. */
export function withEtags(exchange: Exchange): Exchange {
  const known = new Map<string, Answer>();
  return async (request, headers) => {
    if (request.method !== 'GET') return exchange(request, headers);
    const id = JSON.stringify([request.path, headers]);
    const last = known.get(id);
    const etag = last?.header('etag');
    const answer = await exchange(request, etag === undefined ? headers : { ...headers, 'if-none-match': etag });
    if (last && answer.status === 304) return { ...last, header: (name) => answer.header(name) ?? last.header(name) };
    known.delete(id);
    if (answer.status === 200) known.set(id, answer);
    const [oldest] = known.keys();
    if (known.size > max && oldest !== undefined) known.delete(oldest);
    return answer;
  };
}

const subjectSchema = z.union([
  z.object({ apiKey: z.object({ id: z.string(), name: z.string() }) }).transform(({ apiKey }) => ({ kind: 'key' as const, ...apiKey })),
  z.object({ user: z.object({ id: z.string(), name: z.string() }) }).transform(({ user }) => ({ kind: 'user' as const, ...user })),
]);
/** A new key or user, whose secret can't be shown again. */
export type SecretSubject = z.infer<typeof subjectSchema>;

type SecretGuard = {
  /** Called before a secret is requested. */
  begin(): void;
  /** @param subject whose secret it is, if the response says so */
  show(secret: string, subject: SecretSubject | null): void;
  /** Called when the secret is no longer visible, or never arrived. */
  end(): Promise<void>;
};

type RequestDeps = {
  send: Send;
  guard: SecretGuard;
  /** @returns null if the page can't hash */
  sha256(text: string): Promise<string | null>;
};

/** How long to keep retrying a sign-in, in ms. A busy core gives priority to clients that retry. */
const signInPatience = 10_000;

const signInAnswer = z.union([sessionSchema, secondFactorNeededSchema]);

export async function signInAt(send: Send, { email, password }: SignIn): Promise<Result<SignInAnswer>> {
  const start = performance.now();
  const attempt = () => send({ ...coreRequest('signIn', { email, password }), schema: signInAnswer });
  let answer = await attempt();
  for (let wait = retryDelay(answer); wait > 0 && performance.now() - start + wait < signInPatience; wait = retryDelay(answer)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    answer = await attempt();
  }
  const isWrong = !answer.ok && answer.failure.kind === 'session-ended';
  return isWrong ? refused('password', 'Incorrect email address or password.') : answer;
}

export async function enterCodeAt(send: Send, code: string): Promise<Result<SessionView>> {
  const answer = await send(coreRequest('enterCode', { code }));
  const isWrong = !answer.ok && answer.failure.kind === 'session-ended';
  return isWrong ? refused('code', `${wrongCode} If you started more than ten minutes ago, go back and start again.`) : answer;
}

/** Users get recovery codes only once they've set up the second factor. */
const wrongFirstCode = 'This code isn’t valid. Enter the current code from your app.';
const wrongCode = 'This code isn’t valid or has already been used. Enter the current code from your app, or another recovery code.';

/** Returns how long to wait before retrying a throttled sign-in, in ms; 0 if it wasn't throttled. */
function retryDelay(answer: Result<unknown>): number {
  if (answer.ok || answer.failure.kind !== 'refused' || answer.failure.code !== 'too-many-requests') return 0;
  return (answer.failure.retryAfterSeconds ?? 0) * 1_000;
}

/** Implements the functions of the bridge that send requests to the core, for both the main process and a browser. */
export function requestFunctions({
  send,
  guard,
  sha256,
}: RequestDeps): Pick<BridgeFunctions, 'request' | 'dismissSecret' | 'identifyApiKey'> {
  let isGuarding = false;

  /** The core's 401 doesn't say whether the session has ended or only the code is wrong. */
  async function explainWrongCode<Value>(name: keyof ConsoleRoutes, input: object, result: Result<Value>): Promise<Result<Value>> {
    if (result.ok || result.failure.kind !== 'session-ended' || !('code' in input) || input.code === undefined) return result;
    const session = await send(coreRequest('showSession', {}));
    return session.ok ? refused('code', name === 'confirmSecondFactor' ? wrongFirstCode : wrongCode) : result;
  }

  return {
    async request(name, input) {
      const { secret }: Route = consoleRoutes[name];
      if (secret !== undefined) guard.begin();
      const result = await explainWrongCode(name, input, await send(coreRequest(name, input)));
      if (secret === undefined) return result;
      const shown: unknown = result.ok ? Object(result.value)[secret] : null;
      if (typeof shown === 'string' || Array.isArray(shown)) {
        isGuarding = true;
        // The guard of another secret may have ended since.
        guard.begin();
        guard.show([shown].flat().join('\n'), subjectSchema.safeParse(result.ok ? result.value : null).data ?? null);
      } else if (!isGuarding) await guard.end();
      return result;
    },
    dismissSecret() {
      isGuarding = false;
      return guard.end();
    },
    async identifyApiKey(pasted) {
      // Find the key in the text, because users paste whole lines, such as the ones that the console offers to copy.
      const [keyValue, other] = findKeyValues(pasted);
      if (keyValue === undefined) {
        if (hasMistypedKey(pasted))
          return refused(
            'keyValue',
            'At least one character of this key value is wrong, because its checksum doesn’t match. Copy it again.',
          );
        return refused(
          'keyValue',
          'This isn’t a key value. A key value starts with svc_sk_live_ and is 61 characters long. Paste the whole value.',
        );
      }
      if (other !== undefined) return refused('keyValue', 'This contains several key values. Paste one at a time.');
      const digest = await sha256(keyValue);
      if (digest === null)
        return refused('keyValue', 'Your browser allows this only over HTTPS. Open the console at an https address and try again.');
      const answer = await send(coreRequest('identifyApiKey', { sha256: digest }));
      return answer.ok ? { ok: true, value: answer.value.apiKey } : answer;
    },
  };
}

export function refused(path: string, message: string): Result<never> {
  return failed(refusal('invalid', message, [{ path, message }]));
}
