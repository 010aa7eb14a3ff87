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
      { name: 'Dialer', description: 'Between the core and a provider that dials.' },
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
  return {
    operationId: id,
    tags: [{ apiKey: 'Calls', signature: 'Dialer', session: 'Console', halfOpenSession: 'Console', nothing: 'Console' }[route.by]],
    summary: route.summary,
    security: route.by === 'nothing' ? [] : [{ [route.by === 'halfOpenSession' ? 'session' : route.by]: [] }],
    parameters: listParameters(id, route),
    ...(route.body
      ? { requestBody: { required: !(route.body instanceof z.ZodOptional), content: jsonContent(schemaName(route.body)) } }
      : {}),
    responses: {
      [route.status]: toSuccess(id, route),
      ...toPending(id, route),
      ...notModified(id, route),
      ...problemResponses(route, responses),
    },
  };
}

function listParameters(id: string, route: Route): Json[] {
  const { path, by, query } = route;
  const inPath = parameterNames(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: name === 'requestId' ? requestId : reference('schemas', 'Identifier'),
  }));
  const { properties = {}, required = [] } = query ? z.toJSONSchema(query, { io: 'input' }) : {};
  const inQuery = Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }));
  const named = [
    requestIdHeader,
    ...(id === 'placeCall' ? ['Idempotency-Key'] : []),
    ...(by === 'session' ? [tenancyHeader] : []),
    ...(hasEtag(route) ? ['If-None-Match'] : []),
    ...(by === 'signature' ? [signatureHeaders.id, signatureHeaders.timestamp] : []),
  ];
  return [...inPath, ...inQuery, ...named.map((name) => reference('parameters', name))];
}

function toSuccess(id: string, route: Route): Json {
  const { by, status, answer } = route;
  const isInConsole = by === 'session' || by === 'halfOpenSession' || by === 'nothing';
  const sent = headersWhere([
    [true, requestIdHeader],
    [by === 'apiKey', keyExpiresHeader],
    [id === 'placeCall', replayedHeader],
    [isInConsole, generationHeader],
    [hasEtag(route), 'ETag'],
    [isInConsole, 'Set-Cookie'],
    [status === 303, 'Location'],
  ]);
  return {
    description: STATUS_CODES[status],
    headers: sent,
    ...(answer ? { content: answer === 'csv' ? csvContent : jsonContent(schemaName(answer)) } : {}),
  };
}

function toPending(id: string, { pending, ...route }: Route): Json {
  return pending ? { 202: { ...toSuccess(id, { ...route, answer: pending }), description: STATUS_CODES[202] } } : {};
}

function hasEtag({ by, method, answer }: Route): boolean {
  return (by === 'session' || by === 'nothing') && method === 'GET' && typeof answer === 'object';
}

function notModified(id: string, route: Route): Json {
  return hasEtag(route) ? { 304: { ...toSuccess(id, route), description: STATUS_CODES[304], content: undefined } } : {};
}

const csvContent = { 'text/csv': { schema: { type: 'string' } } };

function headersWhere(sent: readonly [boolean, HeaderName][]): Json {
  return Object.fromEntries(sent.flatMap(([applies, name]) => (applies ? [[name, reference('headers', name)]] : [])));
}

function jsonContent(name: string): Json {
  const example = bodyExamples[name];
  return { 'application/json': { schema: reference('schemas', name), ...(example ? { example } : {}) } };
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

function listProblems({ by, body, problems = [] }: Route): ProblemCode[] {
  const isInConsole = by === 'session' || by === 'halfOpenSession' || by === 'nothing';
  const has: [boolean, ...ProblemCode[]][] = [
    [true, 'malformed-request', 'unauthorized', 'internal', 'unavailable', ...problems],
    [isInConsole, 'cross-site'],
    [by === 'session', 'method-not-allowed', 'too-many-requests'],
    // These are for users with a one-time password, and for tenancies that don't exist or that the viewer can't use.
    [by === 'session', 'forbidden', 'not-found'],
    [body !== undefined, 'invalid'],
    // A report whose body is incomplete can't have a valid signature, so it gets a 401 instead of these.
    [body !== undefined && by !== 'signature', 'too-large', 'unsupported-media-type'],
  ];
  return [...new Set(has.flatMap(([applies, ...codes]) => (applies ? codes : [])))];
}

function problemResponse(codes: readonly ProblemCode[], status: number, { by }: Route): Json {
  const sent = headersWhere([
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
  return {
    description:
      status === 405
        ? 'Method not allowed: the response to any other method on this path'
        : codes.map((code) => problemTable[code].title).join(', or: '),
    headers: sent,
    content: {
      [problemMediaType]: { schema: narrowed, examples: Object.fromEntries(codes.map((code) => [code, { value: problemExample(code) }])) },
    },
  };
}

function problemExample(code: ProblemCode): Json {
  const { title, status } = problemTable[code];
  return { type: problemType(code), title, status, detail: detailExamples[code] };
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
    '429': { description: 'Not now: the same hand-off will be sent again later.' },
    '4XX': { description: 'Rejected: the call has failed.' },
    '5XX': { description: 'Not now: the same hand-off will be sent again later.' },
  },
};
