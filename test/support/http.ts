import { connect } from 'node:net';
import { type Dispatcher, request } from 'undici';
import { answerErrors } from './openapi.ts';

export type Answer = {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
  /** The body if it's a JSON object; otherwise empty. */
  json: Readonly<Record<string, unknown>>;
};

export type Ask = {
  key?: string | undefined;
  cookie?: string | undefined;
  body?: unknown;
  signal?: AbortSignal | null;
  /** A body that is sent unchanged. */
  raw?: string | Buffer;
  headers?: Record<string, string | string[]>;
};

/** Sends one request as a program would, without redirects, retries or stored cookies. The response must match core/openapi.json. */
export async function ask(method: string, url: string, { key, cookie, body, signal = null, raw, headers = {} }: Ask = {}): Promise<Answer> {
  const sent = raw ?? (body === undefined ? null : JSON.stringify(body));
  const response = await request(url, {
    method: method as Dispatcher.HttpMethod,
    headers: {
      ...(sent === null ? {} : { 'Content-Type': 'application/json' }),
      ...(key === undefined ? {} : { 'X-API-Key': key }),
      ...(cookie === undefined ? {} : { Cookie: cookie }),
      ...headers,
    },
    body: sent,
    signal,
  });
  const text = await response.body.text();
  const isJson = /json/.test(String(response.headers['content-type']));
  const answer = {
    status: response.statusCode,
    headers: response.headers,
    text,
    json: isJson && text !== '' ? JSON.parse(text) : {},
  };
  const errors = answerErrors(method, url, answer);
  if (errors.length > 0) throw new Error(`The response to ${method} ${url} doesn't match core/openapi.json: ${errors.join(' ')}`);
  return answer;
}

/** Returns the cookies set by a response, with their attributes. */
export function readSetCookies(answer: Answer): string[] {
  return [answer.headers['set-cookie'] ?? []].flat();
}

/** Returns the cookies set by a response, in the form that a later request sends. */
export function readCookies(answer: Answer): string {
  return readSetCookies(answer)
    .map((cookie) => cookie.split(';')[0])
    .join('; ');
}

/** Returns the text at a path in a response body: `textAt(answer, 'apiKey', 'id')`. Fails if there is none. */
export function textAt(answer: Answer, ...path: string[]): string {
  let value: unknown = answer.json;
  for (const name of path) value = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  if (typeof value !== 'string') throw new Error(`No text at ${path.join('.')} in: ${answer.status} ${answer.text}`);
  return value;
}

/** Returns the code at the end of a problem's type. */
export function readCode(answer: Answer): string {
  return String(answer.json['type']).replace(/^.*#/, '');
}

/** Returns the raw response over a socket, byte for byte except for the Date. The request must send `Connection: close`. */
export function overSocket(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () =>
      resolve(
        Buffer.concat(chunks)
          .toString('latin1')
          .replace(/^Date: .*\r\n/m, ''),
      ),
    );
  });
}
