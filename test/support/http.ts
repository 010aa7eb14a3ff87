import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Dispatcher, request } from 'undici';

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

/** Repeats a request that gets a 503, as clients do: a busy machine can be too slow for a core's time limits, and nothing has happened then. */
export async function untilServed<Reply extends { status: number | null }>(send: () => Promise<Reply>): Promise<Reply> {
  for (let attempt = 1; ; attempt++) {
    const reply = await send();
    if (reply.status !== 503 || attempt === 5) return reply;
  }
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

type Content = Record<string, { schema: object }>;
type Header = { required?: boolean; schema: object };
type Response = { headers?: Record<string, Reference>; content?: Content };
type Reference = { $ref: string };
type Operation = { responses: Record<string, Response | Reference> };
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { headers: Record<string, Header>; responses: Record<string, Response>; schemas: Record<string, object> };
};

export const openapiText = readFileSync(new URL('../../core/openapi.json', import.meta.url), 'utf8');
export const openapi: Document = JSON.parse(openapiText);

/** Clients must accept new fields, but here an undocumented field is an error. */
const strict: Document = JSON.parse(openapiText, (name, value) =>
  isRecord(value) && isRecord(value['properties']) && !('$ref' in value) && name !== 'properties'
    ? { additionalProperties: false, ...value }
    : value,
);

// Without validating the document, which isn't itself a schema: that would take 60 ms in each test process.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true, validateSchema: false });
ajv.addSchema(strict, 'openapi');

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the errors in a value, according to the schema at a path in the document, such as `#/components/schemas/Problem`. */
export function schemaErrors(pointer: string, value: unknown): string[] {
  const validate = ajv.getSchema(`openapi${pointer}`);
  if (!validate) return [`The document has no ${pointer}.`];
  return validate(value) === true ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Returns the differences between a response and the document. Empty if it matches, and for paths outside of the contract. */
export function answerErrors(method: string, url: string, answer: Answer): string[] {
  const path = findPath(new URL(url).pathname);
  if (path === undefined) return [];
  const name = method === 'HEAD' ? 'get' : method.toLowerCase();
  const operation = openapi.paths[path]?.[name];
  const described = operation ? operation.responses[answer.status] : toOtherMethods[answer.status];
  if (!described) return [`The status ${answer.status} isn't described.`];
  const isShared = '$ref' in described;
  const response = isShared ? openapi.components.responses[described.$ref.split('/').at(-1) ?? ''] : described;
  const pointer = isShared ? described.$ref : `#/paths/${escapePointer(path)}/${name}/responses/${answer.status}`;
  return [...headerErrors(response ?? {}, answer), ...(method === 'HEAD' ? [] : bodyErrors(response ?? {}, pointer, answer))];
}

/** The responses of each path to methods that it doesn't support. */
const toOtherMethods: Record<number, Reference> = {
  400: { $ref: '#/components/responses/MalformedRequest' },
  401: { $ref: '#/components/responses/Unauthorized' },
  405: { $ref: '#/components/responses/MethodNotAllowed' },
};

const patterns = Object.keys(openapi.paths).map((path) => ({ path, pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`) }));

/** Returns the path of the document that matches a URL, preferably one without a parameter at the end. */
function findPath(pathname: string): string | undefined {
  const matching = patterns.filter(({ pattern }) => pattern.test(pathname)).map(({ path }) => path);
  return matching.find((path) => !path.endsWith('}')) ?? matching[0];
}

function headerErrors({ headers = {} }: Response, answer: Answer): string[] {
  return Object.entries(openapi.components.headers).flatMap(([name, { required = false }]) => {
    const sent = answer.headers[name.toLowerCase()];
    if (!(name in headers)) return sent === undefined ? [] : [`The header ${name} isn't described.`];
    if (sent === undefined) return required ? [`The header ${name} is missing.`] : [];
    return [sent].flat().flatMap((value) => {
      const errors = (given: unknown) => schemaErrors(`#/components/headers/${name}/schema`, given);
      return (errors(value).length > 0 ? errors(Number(value)) : []).map((error) => `${name}: ${error}`);
    });
  });
}

function bodyErrors({ content }: Response, pointer: string, { headers, text }: Answer): string[] {
  if (text === '') return content ? ['The body is missing.'] : [];
  const mediaType = String(headers['content-type']).replace(/;.*/, '');
  if (!content?.[mediaType]) return [`The media type ${mediaType} isn't described.`];
  return schemaErrors(`${pointer}/content/${escapePointer(mediaType)}/schema`, mediaType === 'text/csv' ? text : JSON.parse(text));
}

/** Escapes a name for use in a JSON pointer in a URI fragment. */
function escapePointer(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}
