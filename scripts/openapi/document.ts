import { globSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { signatureHeaders } from '#contract/calls/signature.ts';
import { tenancyHeader } from '#contract/console/session.ts';
import { generation, generationHeader } from '#contract/contract-generation.ts';
import { keyExpiresHeader, rateLimitHeader, rateLimitPolicyHeader, replayedHeader } from '#contract/headers.ts';
import { type ProblemCode, problemMediaType, problemTable, problemType, requestIdHeader } from '#contract/problems.ts';
import { parameterNames, type Route } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';
import base from './base.json' with { type: 'json' };
import examples from './examples.json' with { type: 'json' };

type Json = Record<string, unknown>;
type HeaderName = keyof typeof headers;

const { headers } = base.components;
const bodyExamples: Readonly<Record<string, object>> = examples.bodies;
const detailExamples: Readonly<Record<ProblemCode, string>> = examples.details;

/** Describes the public listener of this version in OpenAPI 3.1: adds what follows from the contract to `base.json`. */
export function openapiDocument(version: string): Json {
  const responses: Json = {};
  const paths: Record<string, Json> = {};
  for (const [id, route] of Object.entries<Route>(routes)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(id, route, responses) };
  }
  const { handoff } = base.webhooks;
  return {
    ...base,
    info: { ...base.info, version },
    paths,
    webhooks: { handoff: { post: { ...handoff.post, requestBody: { required: true, content: jsonContent('Handoff') } } } },
    components: {
      ...base.components,
      schemas: jsonSchemas(),
      responses,
      headers: { ...headers, [generationHeader]: { ...headers[generationHeader], schema: { type: 'integer', const: generation } } },
    },
  };
}

function toOperation(id: string, route: Route, responses: Json): Json {
  const { by, summary, status, body, answer, pending, repeated } = route;
  return {
    operationId: id,
    tags: [{ apiKey: 'Calls', signature: 'Dialer', session: 'Console', halfOpenSession: 'Console', nothing: 'Console' }[by]],
    summary,
    security: by === 'nothing' ? [] : [{ [by === 'halfOpenSession' ? 'session' : by]: [] }],
    parameters: listParameters(id, route),
    ...(body && { requestBody: { required: !(body instanceof z.ZodOptional), content: jsonContent(schemaName(body)) } }),
    responses: {
      [status]: toSuccess(id, route, status, answer),
      ...(pending && { 202: toSuccess(id, route, 202, pending) }),
      ...(repeated && { [repeated]: toSuccess(id, route, repeated, answer) }),
      ...(hasEtag(route) && { 304: toSuccess(id, route, 304) }),
      ...problemResponses(route, responses),
    },
  };
}

function listParameters(id: string, route: Route): Json[] {
  const { path, by, query } = route;
  const inPath = parameterNames(path).map((name) => {
    const schema = name === 'requestId' ? headers[requestIdHeader].schema : reference('schemas', 'Identifier');
    return { name, in: 'path', required: true, schema };
  });
  const { properties = {}, required = [] } = query ? z.toJSONSchema(query, { io: 'input' }) : {};
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }));
  const named = applying<string>([
    [true, requestIdHeader],
    [id === 'placeCall', 'Idempotency-Key'],
    [by === 'session', tenancyHeader],
    [hasEtag(route), 'If-None-Match'],
    [by === 'signature', signatureHeaders.id, signatureHeaders.timestamp],
  ]);
  return [...inPath, ...inQuery, ...named.map((name) => reference('parameters', name))];
}

function toSuccess(id: string, route: Route, status: number, answer?: Route['answer']): Json {
  const { by } = route;
  const sent = listHeaders([
    [true, requestIdHeader],
    [by === 'apiKey', keyExpiresHeader],
    [id === 'placeCall', replayedHeader, rateLimitPolicyHeader, rateLimitHeader],
    [isInConsole(route), generationHeader],
    [hasEtag(route), 'ETag'],
    [isInConsole(route), 'Set-Cookie'],
    [status === 303, 'Location'],
  ]);
  const content = answer === 'csv' ? { 'text/csv': { schema: { type: 'string' } } } : answer && jsonContent(schemaName(answer));
  return { description: STATUS_CODES[status], headers: sent, ...(content && { content }) };
}

function isInConsole({ by }: Route): boolean {
  return by === 'session' || by === 'halfOpenSession' || by === 'nothing';
}

function hasEtag({ by, method, answer }: Route): boolean {
  return (by === 'session' || by === 'nothing') && method === 'GET' && typeof answer === 'object';
}

/** Returns the names in the rows whose condition is true. */
function applying<Name extends string>(rows: readonly (readonly [boolean, ...Name[]])[]): Name[] {
  return rows.flatMap(([applies, ...names]) => (applies ? names : []));
}

function reference(kind: 'schemas' | 'responses' | 'headers' | 'parameters', name: string) {
  return { $ref: `#/components/${kind}/${name}` };
}

function listHeaders(rows: readonly (readonly [boolean, ...HeaderName[]])[]): Json {
  return Object.fromEntries(applying(rows).map((name) => [name, reference('headers', name)]));
}

function jsonContent(name: string): Json {
  const example = bodyExamples[name];
  return { 'application/json': { schema: reference('schemas', name), ...(example && { example }) } };
}

/** Builds a route's references to problem responses, and adds those responses to `responses`. */
function problemResponses(route: Route, responses: Json): Json {
  const references: Json = {};
  for (const [status, codes] of Map.groupBy(listProblems(route), (code) => problemTable[code].status)) {
    const name = codes.map((code) => code.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())).join('Or');
    const fullName = route.by === 'apiKey' && status !== 401 ? `${name}ToKey` : name;
    responses[fullName] ??= problemResponse(codes, status, route);
    references[status] = reference('responses', fullName);
  }
  return references;
}

function listProblems(route: Route): ProblemCode[] {
  const { by, body, problems = [] } = route;
  const codes = applying<ProblemCode>([
    [true, 'malformed-request', 'unauthorized', 'internal', 'unavailable', ...problems],
    [isInConsole(route), 'cross-site'],
    [by === 'session', 'method-not-allowed', 'too-many-requests'],
    // These are for users with a one-time password, and for tenancies that don't exist or that the viewer can't use.
    [by === 'session', 'forbidden', 'not-found'],
    [body !== undefined, 'invalid'],
    [body !== undefined, 'too-large'],
    // A signed body can only be JSON.
    [body !== undefined && by !== 'signature', 'unsupported-media-type'],
  ]);
  return [...new Set(codes)];
}

function problemResponse(codes: readonly ProblemCode[], status: number, { by }: Route): Json {
  const sent = listHeaders([
    [status === 401, 'WWW-Authenticate'],
    [status !== 401, requestIdHeader],
    [status !== 401 && by === 'apiKey', keyExpiresHeader],
    [status === 405, 'Allow'],
    [status === 429 || status === 503, 'Retry-After'],
    [codes.includes('too-many-calls'), rateLimitPolicyHeader, rateLimitHeader],
  ]);
  const narrowed = {
    ...reference('schemas', 'Problem'),
    properties: { type: { enum: codes.map(problemType) }, status: { const: status } },
  };
  const description =
    status === 405
      ? 'Method not allowed: the response to any other method on this path'
      : codes.map((code) => problemTable[code].title).join(', or: ');
  const toExample = (code: ProblemCode) => {
    const value = { type: problemType(code), title: problemTable[code].title, status, detail: detailExamples[code] };
    return [code, { value }];
  };
  const content = { [problemMediaType]: { schema: narrowed, examples: Object.fromEntries(codes.map(toExample)) } };
  return { description, headers: sent, content };
}

/** Schemas that get a name although they aren't the body or response of a route. */
const parts = 'handoff problem apiKey call event expiration identifier instant named place user'.split(' ').map((name) => `${name}Schema`);
const contract = fileURLToPath(new URL('../../core/contract', import.meta.url));
const modules: Readonly<Record<string, unknown>>[] = await Promise.all(globSync(`${contract}/**/*.ts`).map((file) => import(file)));
const exported = Object.assign({}, ...modules);
const names = new Map<unknown, string>(Object.entries(exported).map(([name, schema]) => [schema, name]));

/** Names a body or response after its export: `createApiKeySchema` becomes `CreateApiKey` in the document. */
function schemaName(schema: z.ZodType): string {
  const name = names.get(schema);
  if (!name?.endsWith('Schema')) throw new Error("Export the schemas of a route's body and response under names that end in Schema.");
  return name.replace(/Schema$/, '').replace(/^./, (letter) => letter.toUpperCase());
}

/**
 * Converts the schemas to JSON Schema, which can't express refinements, so an input that matches may still be refused. Responses may have
 * more fields than their schemas, because later releases may add some.
 */
function jsonSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const ofRoutes = Object.values<Route>(routes).flatMap(({ body, answer, pending }) => [body, answer, pending]);
  for (const schema of [...ofRoutes, ...parts.map((name): unknown => exported[name])])
    if (schema instanceof z.ZodType) registry.add(schema, { id: schemaName(schema) });
  const converted = z.toJSONSchema(registry, { io: 'input', uri: (id) => `#/components/schemas/${id}` }).schemas;
  return Object.fromEntries(Object.entries(converted).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}
