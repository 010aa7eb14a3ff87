import { connect } from 'node:net';
import { type Dispatcher, request } from 'undici';
import { answerErrors } from './openapi.ts';

export type Answer = {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
  /** The body, where it is a JSON object; otherwise empty. */
  json: Readonly<Record<string, unknown>>;
};

export type Ask = {
  key?: string;
  cookie?: string;
  body?: unknown;
  /** A body sent as it is. */
  raw?: string | Buffer;
  headers?: Record<string, string | string[]>;
};

/** Sends one request, as a program would: no redirects, no retries, no cookies of its own. The answer has to be as core/openapi.json says. */
export async function ask(method: string, url: string, { key, cookie, body, raw, headers = {} }: Ask = {}): Promise<Answer> {
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
  if (errors.length > 0) throw new Error(`${method} ${url} was answered otherwise than core/openapi.json says: ${errors.join(' ')}`);
  return answer;
}

/** The cookies that an answer sets, as a later request sends them. */
export function cookiesOf(answer: Answer): string {
  return [answer.headers['set-cookie'] ?? []]
    .flat()
    .map((cookie) => cookie.split(';')[0])
    .join('; ');
}

/** The text at a place in an answer's body: `textAt(answer, 'apiKey', 'id')`. Fails where there is none. */
export function textAt(answer: Answer, ...path: string[]): string {
  let found: unknown = answer.json;
  for (const name of path) found = typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined;
  if (typeof found !== 'string') throw new Error(`No text at ${path.join('.')} in: ${answer.status} ${answer.text}`);
  return found;
}

/** The code at the end of a problem's type. */
export function codeOf(answer: Answer): string {
  return String(answer.json['type']).replace(/^.*#/, '');
}

/** What comes back over a bare socket, byte for byte, but for the Date. The request has to ask for `Connection: close`. */
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
