import { databaseKinds, withoutRows } from './databases.ts';
import { withTenants } from './tenants.ts';

/** Creates the databases that all test files copy. @returns the value of TEST_TEMPLATES */
export async function makeTemplates(): Promise<string> {
  const named = Object.entries({ 'without rows': withoutRows, 'with tenants': withTenants });
  const templates = named.flatMap(([name, { getTemplate }]) =>
    databaseKinds.map(async (kind) => [`${name} ${kind}`, await getTemplate(kind)] as const),
  );
  return JSON.stringify(Object.fromEntries(await Promise.all(templates)));
}
