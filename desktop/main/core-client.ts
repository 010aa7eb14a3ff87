import type { IncomingHttpHeaders } from 'node:http';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher } from 'undici';
import type { z } from 'zod';
import { generation, generationHeader } from '#contract/generation.ts';
import { parseJson } from '#contract/json.ts';
import { problemCode, problemMediaType, problemSchema } from '#contract/problems.ts';
import type { Failure, Result } from '../ipc.ts';
import { CookieJar, type SessionCookies } from './cookie-jar.ts';
import { describeNetworkError } from './network-errors.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A client of one core, with one session. */
export type CoreClient = {
  server: string;
  /** @param schema checks the answer */
  requestJson<Schema extends z.ZodType>(method: Method, path: string, schema: Schema, body?: unknown): Promise<Result<z.output<Schema>>>;
  /** A request whose answer has no body to read. */
  requestEmpty(method: Method, path: string, body?: unknown): Promise<Result<null>>;
  /** The cookies of the session, to store. */
  cookies(): SessionCookies;
  close(): Promise<void>;
};

type Answer = { status: number; headers: IncomingHttpHeaders; text: string };

const timeoutsMs = { connect: 5_000, answer: 15_000 };
const maxAnswerBytes = 8 * 1024 * 1024;

/** Follows no redirect: the session's cookie must not go to another server. */
export function coreClient(server: string, stored: SessionCookies = {}): CoreClient {
  const { origin, pathname } = new URL(server);
  const jar = new CookieJar(stored);
  const agent = new Agent({
    connections: 4,
    pipelining: 1,
    // Self-hosters install their own certificate authority in the system's store.
    connect: { timeout: timeoutsMs.connect, ca: [...getCACertificates('default'), ...getCACertificates('system')] },
    headersTimeout: timeoutsMs.answer,
    bodyTimeout: timeoutsMs.answer,
    maxResponseSize: maxAnswerBytes,
  });

  async function send(method: Method, path: string, body: unknown): Promise<Answer> {
    const cookie = jar.header();
    const options: Dispatcher.RequestOptions = {
      origin,
      path: pathname.replace(/\/$/, '') + path,
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(cookie === '' ? {} : { cookie }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    };
    const response = await agent.request(options);
    const answer = { status: response.statusCode, headers: response.headers, text: await response.body.text() };
    jar.update(answer.headers['set-cookie'] ?? []);
    return answer;
  }

  async function exchange<Value>(method: Method, path: string, body: unknown, read: (answer: Answer) => Result<Value>) {
    try {
      return read(await send(method, path, body));
    } catch (error) {
      return failed({ kind: 'unreachable', detail: describeNetworkError(error) });
    }
  }

  return {
    server,
    requestJson: (method, path, schema, body) => exchange(method, path, body, (answer) => readAnswer(answer, schema)),
    requestEmpty: (method, path, body) => exchange(method, path, body, (answer) => failureIn(answer) ?? { ok: true, value: null }),
    cookies: () => jar.all(),
    close: () => agent.destroy(),
  };
}

function readAnswer<Schema extends z.ZodType>(answer: Answer, schema: Schema): Result<z.output<Schema>> {
  const failure = failureIn(answer);
  if (failure) return failure;
  const parsed = schema.safeParse(parseJson(answer.text));
  return parsed.success ? { ok: true, value: parsed.data } : failed({ kind: 'incompatible', core: 'unknown' });
}

/** The failure that an answer stands for; null if it succeeded. */
function failureIn(answer: Answer): Result<never> | null {
  const { status, headers, text } = answer;
  if (status >= 200 && status < 300) return generationMismatch(headers);
  const problem = headers['content-type']?.startsWith(problemMediaType) ? problemSchema.safeParse(parseJson(text)) : null;
  const code = problem?.success ? problemCode(problem.data.type) : undefined;
  if (!problem?.success || !code) {
    // Not the core's own format: a proxy in front of it answered.
    if (status >= 500 || status === 429)
      return failed({ kind: 'unreachable', detail: `The proxy in front of the core answered ${status}. Check that the core is running.` });
    return failed({ kind: 'incompatible', core: 'unknown' });
  }
  if (code === 'unauthorized') return failed({ kind: 'session-ended' });
  const { detail, errors = [], instance } = problem.data;
  const retryAfter = Number(headers['retry-after']);
  return failed({
    kind: 'refused',
    code,
    detail: instance === undefined ? detail : `${detail} (${instance})`,
    errors,
    retryAfterSeconds: Number.isInteger(retryAfter) && retryAfter > 0 ? retryAfter : null,
  });
}

function generationMismatch(headers: IncomingHttpHeaders): Result<never> | null {
  const header = headers[generationHeader.toLowerCase()];
  if (header === String(generation)) return null;
  const number = header === undefined ? 0 : Number(header);
  if (Number.isNaN(number)) return failed({ kind: 'incompatible', core: 'unknown' });
  return failed({ kind: 'incompatible', core: number < generation ? 'older' : 'newer' });
}

function failed(failure: Failure): Result<never> {
  return { ok: false, failure };
}
