import { createRequire } from 'node:module';
import type * as MochaRunner from '@stryker-mutator/mocha-runner';
import { reloadingRunner } from './reloading-runner.ts';

// Mocha 12.0.3 has .cjs files where @stryker-mutator/mocha-runner 10.0.0 expects .js, and asks for them without an ending.
const { extensions } = createRequire(import.meta.url);
extensions['.cjs'] = extensions['.js'];
// Mocha requires what it can, and what is required cannot be loaded again.
Object.defineProperty(process.features, 'require_module', { value: false });
const { createMochaTestRunner, strykerValidationSchema }: typeof MochaRunner = await import('@stryker-mutator/mocha-runner');

export { strykerValidationSchema };

/** What Stryker asks of a plugin, and of Babel's paths to the nodes of a file. */
type Path = { node: { type: string; quasis?: readonly { value: { raw: string } }[] } };

const keyword =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|CASE|WHEN|VALUES|PRAGMA|JOIN|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|IS NULL)\b/;

/** SQL: no statement is left without its text, and no part of it is a mutant of its own. */
export const strykerPlugins = [
  reloadingRunner(createMochaTestRunner),
  {
    kind: 'Ignore',
    name: 'sql',
    value: {
      shouldIgnore({ node }: Path): string | undefined {
        const isSql = node.type === 'TemplateLiteral' && node.quasis?.some(({ value }) => keyword.test(value.raw));
        return isSql === true ? 'SQL' : undefined;
      },
    },
  },
];
