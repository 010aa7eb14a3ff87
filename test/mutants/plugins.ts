import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type * as MochaRunner from '@stryker-mutator/mocha-runner';

// Mocha 12.0.3 has .cjs files where @stryker-mutator/mocha-runner 10.0.0 expects .js, and asks for them without an ending.
const { extensions } = createRequire(import.meta.url);
extensions['.cjs'] = extensions['.js'];
// Mocha requires what it can, and what is required can't be loaded again.
Object.defineProperty(process.features, 'require_module', { value: false });
const { createMochaTestRunner: createRunner, strykerValidationSchema }: typeof MochaRunner = await import('@stryker-mutator/mocha-runner');

export { strykerValidationSchema };

let loads = 0;

/** Loads modules of the mutated copy again, not packages. The two named are about this process, and not about what imports them. */
const reload: Parameters<typeof registerHooks>[0]['resolve'] = (specifier, context, next) => {
  const found = next(specifier, context);
  const isOurs = found.url.startsWith(pathToFileURL('.').href);
  const stays = /\/node_modules\/|\/test\/support\/(?:mutants|clean-up)\.ts$/.test(found.url);
  return isOurs && !stays ? { ...found, url: `${found.url}?load=${loads}` } : found;
};

/**
 * Stryker's runner for Mocha, which can load files again. What runs when a file is loaded (tables, schemas) is mutated before that. Stryker
 * starts a process for each such mutant otherwise, and that takes many times as long as most tests.
 */
function createReloadingRunner(...[injector]: Parameters<typeof createRunner>) {
  registerHooks({ resolve: reload });
  let runner = createRunner(injector);
  return {
    capabilities: async () => ({ reloadEnvironment: true }),
    init: () => runner.init(),
    dryRun: (options: Parameters<typeof runner.dryRun>[0]) => runner.dryRun(options),
    async mutantRun(options: Parameters<typeof runner.mutantRun>[0]) {
      if (options.reloadEnvironment) {
        await runner.dispose();
        loads++;
        runner = createRunner(injector);
        await runner.init();
      }
      return runner.mutantRun(options);
    },
    dispose: () => runner.dispose(),
  };
}
createReloadingRunner.inject = createRunner.inject;

/** What Stryker gives: Babel's path to a node. */
type Path = { node: { type: string; quasis?: readonly { value: { raw: string } }[] } };

const keyword =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|CASE|WHEN|VALUES|PRAGMA|JOIN|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|IS NULL)\b/;

/** SQL: no statement is left without its text, and no part of it is a mutant of its own. */
const shouldIgnore = ({ node }: Path): string | undefined =>
  node.type === 'TemplateLiteral' && node.quasis?.some(({ value }) => keyword.test(value.raw)) ? 'SQL' : undefined;

export const strykerPlugins = [
  { kind: 'TestRunner', name: 'reloading', factory: createReloadingRunner },
  { kind: 'Ignore', name: 'sql', value: { shouldIgnore } },
];
