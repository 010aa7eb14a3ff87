import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Route } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';

/** Schemas that get a name although they aren't the body or response of a route. */
const parts = 'handoff problem apiKey call event expiration identifier instant named place user'.split(' ').map((name) => `${name}Schema`);
const contract = fileURLToPath(new URL('../../core/contract', import.meta.url));
const modules: Readonly<Record<string, unknown>>[] = await Promise.all(globSync(`${contract}/**/*.ts`).map((file) => import(file)));
const exported = Object.assign({}, ...modules);
const names = new Map<unknown, string>(Object.entries(exported).map(([name, schema]) => [schema, name]));

/** Names a body or response after its export: `createApiKeySchema` becomes `CreateApiKey` in the document. */
export function schemaName(schema: z.ZodType): string {
  const name = names.get(schema);
  if (!name?.endsWith('Schema')) throw new Error("Export the schemas of a route's body and response under names that end in Schema.");
  return name.replace(/Schema$/, '').replace(/^./, (letter) => letter.toUpperCase());
}

/**
 * Converts the schemas to JSON Schema, which can't express refinements, so an input that matches may still be refused. Responses may have
 * more fields than their schemas, because later releases may add some.
 */
export function jsonSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const ofRoutes = Object.values<Route>(routes).flatMap(({ body, answer, pending }) => [body, answer, pending]);
  for (const schema of [...ofRoutes, ...parts.map((name): unknown => exported[name])])
    if (schema instanceof z.ZodType) registry.add(schema, { id: schemaName(schema) });
  const converted = z.toJSONSchema(registry, { io: 'input', uri: (id) => `#/components/schemas/${id}` }).schemas;
  return Object.fromEntries(Object.entries(converted).map(([id, { $schema, $id, ...schema }]) => [id, schema]));
}
