import { z } from 'zod';
import { type ConsoleRoutes, consoleRoutes } from '#contract/routes/console.ts';
import { parameterNames, pathTo, type Route } from '#contract/routes/route.ts';
import type { ExportName, ExportRequest, RequestAnswer, RequestInput, RequestName, Result } from './ipc.ts';

/** @property schema validates the response and returns its value */
export type CoreRequest<Value> = Pick<Route, 'method' | 'path'> & { schema: z.ZodType<Value>; body?: unknown };
export type Send = <Value>(request: CoreRequest<Value>) => Promise<Result<Value>>;

type Fields = Readonly<Record<string, unknown>>;

/** The schema for a response that has no body, or whose body isn't needed. */
const nothing = z.unknown().transform(() => null);

/** The routes that the page can request. */
export const requestNames = Object.entries<Route>(consoleRoutes).flatMap(([name, { by, answer }]) =>
  by === 'session' && answer !== 'csv' && name !== 'signOut' ? [name as RequestName] : [],
);

/** The routes that return CSV files. */
export const exportNames = Object.entries<Route>(consoleRoutes).flatMap(([name, { answer }]) =>
  answer === 'csv' ? [name as ExportName] : [],
);

/** Returns the path and query that request a file. */
export function exportPath({ name, input }: ExportRequest): string {
  const route: Route = consoleRoutes[name];
  return pathTo(route, { ...input }) + toQuery(toFields(route, { ...input }).query);
}

/**
 * Returns the fields of a route's query, without empty ones, and those of its body. The other fields of the input are parameters of the
 * path.
 */
export function toFields({ path, query, body }: Route, input: Fields): { query: Fields; body: Fields } {
  const names = parameterNames(path);
  const fields = Object.entries(input).filter(([name]) => !names.includes(name));
  // If a route has both a query and a body, the body takes the fields that aren't in the query.
  const isInQuery = (name: string) => query !== undefined && (body === undefined || name in query.shape);
  return {
    query: Object.fromEntries(fields.filter(([name, value]) => isInQuery(name) && value !== null && value !== '')),
    body: Object.fromEntries(fields.filter(([name]) => !isInQuery(name))),
  };
}

export function coreRequest<Name extends keyof ConsoleRoutes>(name: Name, input: RequestInput<Name>): CoreRequest<RequestAnswer<Name>>;
export function coreRequest(name: keyof ConsoleRoutes, input: Fields): CoreRequest<unknown> {
  const route: Route = consoleRoutes[name];
  const { method, body, answer } = route;
  const fields = toFields(route, input);
  return {
    method,
    path: pathTo(route, input) + toQuery(fields.query),
    schema: answer === undefined || answer === 'csv' ? nothing : answer,
    ...(body && { body: fields.body }),
  };
}

function toQuery(fields: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) for (const each of [value ?? []].flat()) query.append(name, String(each));
  return query.size === 0 ? '' : `?${query}`;
}
