import type { IncomingHttpHeaders } from 'node:http';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher } from 'undici';
import type { z } from 'zod';
import { generation, generationHeader } from '#contract/generation.ts';
import { problemCode, problemMediaType, problemSchema } from '#contract/problems.ts';
import type { Failure, Result } from '../ipc.ts';
import { CookieJar, type KeptCookies } from './cookie-jar.ts';
import { whyUnreachable } from './unreachable.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** One core, and the session with it. */
export type CoreClient = {
  server: string;
  /** @param schema of the answer */
  ask<Schema extends z.ZodType>(method: Method, path: string, schema: Schema, body?: unknown): Promise<Result<z.output<Schema>>>;
  /** Asks for something whose answer has nothing to read. */
  tell(method: Method, path: string, body?: unknown): Promise<Result<null>>;
  /** The cookies of the session, for keeping. */
  cookies(): KeptCookies;
  close(): Promise<void>;
};

type Answer = { status: number; headers: IncomingHttpHeaders; text: string };

const timeouts = { connect: 5_000, answer: 15_000 };
const largestAnswer = 8 * 1024 * 1024;

/** Redirects are answers like any other here: the session's cookie never goes to where one points. */
export function coreClient(server: string, kept: KeptCookies = {}): CoreClient {
  const { origin, pathname } = new URL(server);
  const jar = new CookieJar(kept);
  const agent = new Agent({
    connections: 4,
    pipelining: 1,
    // A self-hoster's own authority is known to the system, if it is known at all.
    connect: { timeout: timeouts.connect, ca: [...getCACertificates('default'), ...getCACertificates('system')] },
    headersTimeout: timeouts.answer,
    bodyTimeout: timeouts.answer,
    maxResponseSize: largestAnswer,
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
    jar.take(answer.headers['set-cookie'] ?? []);
    return answer;
  }

  async function exchange<Value>(method: Method, path: string, body: unknown, read: (answer: Answer) => Result<Value>) {
    try {
      return read(await send(method, path, body));
    } catch (error) {
      return failed({ kind: 'unreachable', detail: whyUnreachable(error) });
    }
  }

  return {
    server,
    ask: (method, path, schema, body) => exchange(method, path, body, (answer) => readAnswer(answer, schema)),
    tell: (method, path, body) => exchange(method, path, body, (answer) => refusalIn(answer) ?? { ok: true, value: null }),
    cookies: () => jar.all(),
    close: () => agent.destroy(),
  };
}

function readAnswer<Schema extends z.ZodType>(answer: Answer, schema: Schema): Result<z.output<Schema>> {
  const refusal = refusalIn(answer);
  if (refusal) return refusal;
  const parsed = schema.safeParse(parseJson(answer.text));
  return parsed.success ? { ok: true, value: parsed.data } : failed({ kind: 'incompatible', core: 'unknown' });
}

/** What keeps an answer from being what was asked for, if anything does. */
function refusalIn(answer: Answer): Result<never> | null {
  const { status, headers, text } = answer;
  if (status >= 200 && status < 300) return otherGeneration(headers);
  const problem = headers['content-type']?.startsWith(problemMediaType) ? problemSchema.safeParse(parseJson(text)) : null;
  const code = problem?.success ? problemCode(problem.data.type) : undefined;
  if (!problem?.success || !code) {
    // A proxy, whose core is being restarted or that has troubles of its own.
    if (status >= 500 || status === 429) return failed({ kind: 'unreachable', detail: `What is in front of the core answers ${status}.` });
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

function otherGeneration(headers: IncomingHttpHeaders): Result<never> | null {
  const named = headers[generationHeader.toLowerCase()];
  if (named === String(generation)) return null;
  const number = named === undefined ? 0 : Number(named);
  if (Number.isNaN(number)) return failed({ kind: 'incompatible', core: 'unknown' });
  return failed({ kind: 'incompatible', core: number < generation ? 'older' : 'newer' });
}

function failed(failure: Failure): Result<never> {
  return { ok: false, failure };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
