import { createRequire } from 'node:module';

// Mocha 12.0.3 has .cjs files where @stryker-mutator/mocha-runner 10.0.0 expects .js, and asks for them without an ending.
const { extensions } = createRequire(import.meta.url);
extensions['.cjs'] = extensions['.js'];
const mochaRunner: { strykerPlugins: readonly object[]; strykerValidationSchema: object } = await import('@stryker-mutator/mocha-runner');
export const { strykerValidationSchema } = mochaRunner;

/** What Stryker asks of a plugin, and of Babel's paths to the nodes of a file. */
type Path = { node: { type: string; quasis?: readonly { value: { raw: string } }[] } };

const keyword =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|CASE|WHEN|VALUES|PRAGMA|JOIN|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|IS NULL)\b/;

/** SQL: no statement is left without its text, and no part of it is a mutant of its own. */
export const strykerPlugins = [
  ...mochaRunner.strykerPlugins,
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
