import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import Mocha from 'mocha';

/** The usual report, plus the failures, the counts and the seconds per file for `test/check.ts`. */
class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const skipped: string[] = [];
    const failures: string[] = [];
    const seconds: Record<string, number> = {};
    const tested = new Set<string | undefined>();
    let last = performance.now();
    runner.on('pass', ({ file }) => tested.add(file));
    runner.on('pending', (test) => skipped.push(test.fullTitle()));
    runner.on('fail', (test, error: Error) => failures.push(`${test.fullTitle()}: ${error.message}`));
    runner.on('suite end', ({ file, parent }) => {
      if (!file || !parent?.root) return;
      const now = performance.now();
      const name = relative('.', file);
      // A file that is skipped here may take a long time elsewhere.
      if (tested.has(file)) seconds[name] = (seconds[name] ?? 0) + (now - last) / 1_000;
      last = now;
    });
    runner.once('end', () => {
      const counts = { passed: this.stats.passes, failed: this.stats.failures, failures, skipped, seconds };
      const file = process.env['COUNTS_FILE'];
      if (file !== undefined) writeFileSync(file, JSON.stringify(counts));
    });
  }
}

// Mocha loads a reporter from a module's default export.
export default CountingReporter;
