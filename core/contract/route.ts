import type { z } from 'zod';
import type { ProblemCode } from './problems.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type Credentials = 'apiKey' | 'session' | 'halfOpenSession' | 'signature' | 'nothing';

type RouteOptions = {
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** A JSON schema, or a CSV file. If undefined, the response has no body. */
  answer?: z.ZodObject | 'csv';
  /** The default is 200, or 204 if the response has no body. */
  status?: 201 | 202 | 303;
  /** The status if the request repeats one that has already had its effect. */
  repeated?: 200;
  /** The body of a response with status 202, which means that the client has to do something else first. */
  pending?: z.ZodObject;
  /** The field of the response that contains a secret. No other response contains it. */
  secret?: string;
  /**
   * Whether a request hands out a way to sign in, or gives a user more access. If the signed-in user has a second factor, it then needs a
   * code. Otherwise, someone who has taken over one session could make others for themselves. Creating a key needs none, because a key
   * can't sign in, and everyone who can see it can revoke it.
   */
  confirm?(body: unknown): boolean;
  /** The problems that are specific to this route. scripts/openapi/document.ts adds the others. */
  problems?: readonly ProblemCode[];
};

/** @property path a `:name` segment is a parameter */
export type Route = Omit<RouteOptions, 'status'> & { by: Credentials; method: Method; path: string; status: number };

export function routeBy<const By extends Credentials, const Path extends string, const Options extends RouteOptions>(
  by: By,
  method: Method,
  path: Path,
  options: Options & { secret?: keyof RouteResponse<Options> },
) {
  return { ...options, by, method, path, status: options.status ?? (options.answer === undefined ? 204 : 200) };
}

/** A route of signed-in users. */
export function route<const Path extends string, const Options extends RouteOptions>(
  method: Method,
  path: Path,
  options: Options & { secret?: keyof RouteResponse<Options> },
) {
  return routeBy('session', method, path, options);
}

type PathParameter<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | PathParameter<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

export type PathParameters<Given extends { path: string }> = Record<PathParameter<Given['path']>, string>;
export type RouteQuery<Given> = Given extends { query: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
export type RouteBody<Given> = Given extends { body: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;
/** The response of a route; undefined if it isn't JSON. */
export type RouteResponse<Given> = Given extends { answer: infer Schema extends z.ZodType } ? z.output<Schema> : undefined;

export function parameterNames(path: string): string[] {
  const segments = path.split('/');
  return segments.filter((segment) => segment.startsWith(':')).map((segment) => segment.slice(1));
}

/** Percent-encodes the parameters: `pathTo(routes.showApiKey, { id })`. */
export function pathTo<Path extends string>({ path }: { path: Path }, parameters: PathParameters<{ path: Path }>): string {
  const values: Readonly<Record<string, string>> = parameters;
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
}
