import { z } from 'zod';
import * as calls from '#contract/calls/calls.ts';
import * as dialer from '#contract/calls/dialer.ts';
import * as activity from '#contract/console/activity.ts';
import * as apiKeys from '#contract/console/api-keys.ts';
import * as consoleCalls from '#contract/console/calls.ts';
import * as common from '#contract/console/common.ts';
import * as directory from '#contract/console/directory.ts';
import * as session from '#contract/console/session.ts';
import * as users from '#contract/console/users.ts';
import { expirationSchema } from '#contract/expiry.ts';
import { problemSchema } from '#contract/problems.ts';
import * as protection from '#contract/protection/protection.ts';
import type { Route } from '#contract/routes/route.ts';
import { routes } from '#contract/routes.ts';
import * as signIn from '#contract/sign-in.ts';
import { identifierSchema, instantSchema } from '#contract/text/text.ts';

/** Schemas with a name that aren't the body or response of a route. */
const parts = {
  handoffSchema: dialer.handoffSchema,
  problemSchema,
  apiKeySchema: apiKeys.apiKeySchema,
  callSchema: consoleCalls.callSchema,
  eventSchema: activity.eventSchema,
  expirationSchema,
  identifierSchema,
  instantSchema,
  namedSchema: common.namedSchema,
  placeSchema: common.placeSchema,
  userSchema: users.userSchema,
};
const exported: Readonly<Record<string, unknown>> = {
  ...calls,
  ...dialer,
  ...activity,
  ...apiKeys,
  ...consoleCalls,
  ...common,
  ...directory,
  ...session,
  ...users,
  ...signIn,
  ...protection,
  ...parts,
};
const names = new Map(Object.entries(exported).map(([name, schema]) => [schema, name]));

/** Names a body or response after its export: `createApiKeySchema` becomes `CreateApiKey` in the document. */
export function schemaName(schema: z.ZodType): string {
  const name = names.get(schema);
  if (!name?.endsWith('Schema')) throw new Error('Export the body and answer of a route under a name that ends in Schema.');
  return name.replace(/Schema$/, '').replace(/^./, (letter) => letter.toUpperCase());
}

/** JSON Schema can't express refinements, so a matching input may still be refused. Responses may gain fields. */
export function jsonSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const ofRoutes = Object.values<Route>(routes).flatMap(({ body, answer, pending }) => [body, answer, pending]);
  for (const schema of [...ofRoutes, ...Object.values(parts)])
    if (schema instanceof z.ZodType) registry.add(schema, { id: schemaName(schema) });
  const made = z.toJSONSchema(registry, { io: 'input', uri: (id) => `#/components/schemas/${id}` }).schemas;
  return Object.fromEntries(Object.entries(made).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}
