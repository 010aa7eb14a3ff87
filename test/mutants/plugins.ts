import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type * as MochaRunner from '@stryker-mutator/mocha-runner';

// Mocha 12.0.3 has .cjs files where @stryker-mutator/mocha-runner 10.0.0 expects .js, and requests them without an extension.
const { extensions } = createRequire(import.meta.url);
extensions['.cjs'] = extensions['.js'];
// Mocha uses require() where it can, but modules loaded by require() can't be loaded again.
Object.defineProperty(process.features, 'require_module', { value: false });
const { createMochaTestRunner: createRunner, strykerValidationSchema }: typeof MochaRunner = await import('@stryker-mutator/mocha-runner');

export { strykerValidationSchema };

let loads = 0;

/** Loads modules of the mutated copy again, but not packages, or the two modules that hold the state of this process. */
const reload: Parameters<typeof registerHooks>[0]['resolve'] = (specifier, context, next) => {
  const found = next(specifier, context);
  const isOurs = found.url.startsWith(pathToFileURL('.').href);
  const stays = /\/node_modules\/|\/test\/support\/(?:mutants|clean-up)\.ts$/.test(found.url);
  return isOurs && !stays ? { ...found, url: `${found.url}?load=${loads}` } : found;
};

/**
 * Stryker's runner for Mocha, which can load files again, so that mutants in code that runs on loading (tables, schemas) work. Stryker
 * would start a process for each of these mutants otherwise, which takes many times as long as most tests.
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

/** The value that Stryker passes: Babel's path to a node. */
type Path = { node: { type: string; quasis?: readonly { value: { raw: string } }[] } };

const keyword =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|CASE|WHEN|VALUES|PRAGMA|JOIN|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|IS NULL)\b/;

/** Ignores SQL, so that Stryker neither removes the text of a statement nor mutates a part of it. */
const shouldIgnore = ({ node }: Path): string | undefined =>
  node.type === 'TemplateLiteral' && node.quasis?.some(({ value }) => keyword.test(value.raw)) ? 'SQL' : undefined;

export const strykerPlugins = [
  { kind: 'TestRunner', name: 'reloading', factory: createReloadingRunner },
  { kind: 'Ignore', name: 'sql', value: { shouldIgnore } },
];
