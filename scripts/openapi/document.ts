import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { signatureHeaders } from '#contract/calls/signature.ts';
import { tenancyHeader } from '#contract/console/session.ts';
import { generationHeader } from '#contract/generation.ts';
import { keyExpiresHeader, replayedHeader } from '#contract/headers.ts';
import { type ProblemCode, problemMediaType, problemTable, problemType, requestIdHeader } from '#contract/problems.ts';
import { parameterNames, type Route } from '#contract/routes/route.ts';
import { routes } from '#contract/routes.ts';
import { bodyExamples, detailExamples } from './examples.ts';
import { type HeaderName, headers, parameters, reference, requestId, securitySchemes } from './parts.ts';
import { jsonSchemas, schemaName } from './schemas.ts';

type Json = Record<string, unknown>;

/**
 * Describes the public listener in OpenAPI 3.1.
 *
 * @param version of this program
 */
export function openapiDocument(version: string): Json {
  const responses: Json = {};
  const paths: Record<string, Json> = {};
  for (const [id, route] of Object.entries<Route>(routes)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(id, route, responses) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Callkey',
      version,
      summary: 'API keys for a voice-agent campaign platform, and the on-demand call endpoints that accept them.',
      description:
        'Errors are `application/problem+json` (RFC 9457). Without valid credentials, every path and method returns the same 401, whether it exists or not. `HEAD` works like `GET`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'A core on this machine with the default configuration' }],
    tags: [
      { name: 'Calls', description: 'What an API key can do.' },
      { name: 'Console', description: 'What a signed-in user can do.' },
      { name: 'Dialer', description: 'Messages between the core and a telephony provider.' },
    ],
    paths,
    webhooks: { handoff: { post: handoff } },
    components: {
      schemas: jsonSchemas(),
      responses,
      headers,
      parameters: Object.fromEntries(Object.entries(parameters).map(([name, parameter]) => [name, { name, ...parameter }])),
      securitySchemes,
    },
  };
}

function toOperation(id: string, route: Route, responses: Json): Json {
  const { by, summary, status, body, answer, pending } = route;
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
      ...(hasEtag(route) && { 304: toSuccess(id, route, 304) }),
      ...problemResponses(route, responses),
    },
  };
}

function listParameters(id: string, route: Route): Json[] {
  const { path, by, query } = route;
  const inPath = parameterNames(path).map((name) => {
    const schema = name === 'requestId' ? requestId : reference('schemas', 'Identifier');
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
    [id === 'placeCall', replayedHeader],
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

/** Returns the names in the rows that apply. */
function applying<Name extends string>(rows: readonly (readonly [boolean, ...Name[]])[]): Name[] {
  return rows.flatMap(([applies, ...names]) => (applies ? names : []));
}

function listHeaders(rows: readonly (readonly [boolean, HeaderName])[]): Json {
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
    // A report whose body is incomplete can't have a valid signature, so it gets a 401 instead of these.
    [body !== undefined && by !== 'signature', 'too-large', 'unsupported-media-type'],
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

/** The request that the core sends to a provider. */
const handoff = {
  operationId: 'handoff',
  tags: ['Dialer'],
  summary: 'Dial a call that is due. The same hand-off may be sent more than once, with the same handoffId',
  security: [{ signature: [] }],
  parameters: [signatureHeaders.id, signatureHeaders.timestamp].map((name) => reference('parameters', name)),
  requestBody: { required: true, content: jsonContent('Handoff') },
  responses: {
    '2XX': { description: 'Accepted: the call is being dialed.' },
    '429': { description: "The provider can't take the call now. The same hand-off will be sent again later." },
    '4XX': { description: 'Rejected: the call has failed.' },
    '5XX': { description: "The provider can't take the call now. The same hand-off will be sent again later." },
  },
};
