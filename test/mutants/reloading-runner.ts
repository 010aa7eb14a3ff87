import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type * as MochaRunner from '@stryker-mutator/mocha-runner';

type Create = typeof MochaRunner.createMochaTestRunner;
type Runner = MochaRunner.MochaTestRunner;

let loads = 0;

/** Of the copy of the project that is mutated. The two are about this process, and not about what they are imported by. */
function isReloaded(url: string): boolean {
  return url.startsWith(pathToFileURL('.').href) && !/\/node_modules\/|\/test\/support\/(?:mutants|clean-up)\.ts$/.test(url);
}

/** Modules that are imported by another address are loaded again, and packages are not. */
function reloadModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const found = next(specifier, context);
      return isReloaded(found.url) ? { ...found, url: `${found.url}?load=${loads}` } : found;
    },
  });
}

/**
 * Stryker's runner for Mocha, which can load files again. What runs when a file is loaded (tables, schemas) is mutated before that. Stryker
 * starts a process for each such mutant otherwise, and that takes many times as long as most tests.
 */
export function reloadingRunner(createRunner: Create) {
  const create = (...[injector]: Parameters<Create>) => {
    reloadModules();
    let runner = createRunner(injector);
    return {
      capabilities: async () => ({ reloadEnvironment: true }),
      init: () => runner.init(),
      dryRun: (options: Parameters<Runner['dryRun']>[0]) => runner.dryRun(options),
      async mutantRun(options: Parameters<Runner['mutantRun']>[0]) {
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
  };
  create.inject = createRunner.inject;
  return { kind: 'TestRunner', name: 'reloading', factory: create };
}
