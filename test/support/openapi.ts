import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

type Answer = { status: number; headers: Readonly<Record<string, string | string[] | undefined>>; text: string };
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

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
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
