// Creates a Bruno collection (usebruno.com) from core/openapi.json, for sending requests by hand.

type Parameter = { name: string; in: string; required?: boolean };
type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  security: Record<string, unknown>[];
  parameters: (Parameter | { $ref: string })[];
  requestBody?: { content: { 'application/json': { example?: object } } };
};
export type OpenapiDocument = { paths: Record<string, Record<string, Operation>> };

/** Variables that every request can use. Secrets have no value in a file, because Bruno stores them elsewhere. */
const variables: Readonly<Record<string, string>> = {
  server: 'http://127.0.0.1:8080',
  campaignId: '',
  email: 'admin@localhost',
  timeZone: 'Europe/Berlin',
};
const secrets = ['keyValue', 'password'];

/** @returns each file's text, by its path in the collection */
export function brunoCollection({ paths }: OpenapiDocument): Map<string, string> {
  const files = new Map([
    ['bruno.json', '{ "version": "1", "name": "Callkey", "type": "collection", "ignore": [] }\n'],
    ['environments/local.bru', `${block('vars', variables)}vars:secret [\n${secrets.map((name) => `  ${name}`).join(',\n')}\n]\n`],
  ]);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  // Providers sign their reports, which only a program can do.
  const sendable = operations.filter(({ operation: { security } }) => !security.some((scheme) => 'signature' in scheme));
  for (const [index, { path, method, operation }] of sendable.entries()) {
    const { tags, operationId } = operation;
    files.set(`${String(tags[0]).toLowerCase()}/${operationId}.bru`, requestFile(path, method, operation, index + 1));
  }
  return files;
}

function requestFile(path: string, method: string, { summary, security, parameters, requestBody }: Operation, seq: number): string {
  const named = parameters.filter((parameter) => 'name' in parameter);
  const inPath = named.filter((parameter) => parameter.in === 'path');
  const inQuery = named.filter((parameter) => parameter.in === 'query');
  const body = requestBody?.content['application/json'].example;
  const url = `{{server}}${path.replace(/\{(\w+)\}/g, ':$1')}`;
  const query = inQuery.filter(({ required }) => required).map(({ name }) => `${name}=${toExample(name)}`);
  return [
    block('meta', { name: summary.replace(/\. .*/, ''), type: 'http', seq: String(seq) }),
    block(method, { url: [url, ...query].join('?'), body: body ? 'json' : 'none', auth: 'none' }),
    // In Bruno, a tilde disables optional parameters.
    block('params:query', Object.fromEntries(inQuery.map(({ name, required }) => [required ? name : `~${name}`, toExample(name)]))),
    block('params:path', Object.fromEntries(inPath.map(({ name }) => [name, toExample(name)]))),
    block('headers', security.some((scheme) => 'apiKey' in scheme) ? { 'X-API-Key': '{{keyValue}}' } : {}),
    body ? `body:json {\n${indent(JSON.stringify(body, fromEnvironment, 2))}\n}\n` : '',
    `docs {\n${indent(`${summary}.`)}\n}\n`,
  ]
    .filter((text) => text !== '')
    .join('\n');
}

const examples: Readonly<Record<string, string>> = { requestId: 'order-4711' };

function toExample(parameter: string): string {
  return parameter in variables ? `{{${parameter}}}` : (examples[parameter] ?? '');
}

/** The example's session doesn't belong to anyone, and its times are in the past, so a call with them would lapse immediately. */
function fromEnvironment(this: object, name: string, value: unknown): unknown {
  if (name === 'notBefore' || name === 'notAfter') return undefined;
  return 'password' in this && (name === 'password' || name === 'email') ? `{{${name}}}` : value;
}

function block(name: string, entries: Readonly<Record<string, string>>): string {
  const lines = Object.entries(entries).map(([key, value]) => `  ${key}: ${value}\n`);
  return lines.length === 0 ? '' : `${name} {\n${lines.join('')}}\n`;
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
