import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';

/** The usual report, and the counts for `scripts/check.ts`. */
class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const skipped: string[] = [];
    runner.on('pending', (test) => skipped.push(test.fullTitle()));
    runner.once('end', () => {
      const counts = { passed: this.stats.passes, failed: this.stats.failures, skipped };
      const file = process.env['COUNTS_FILE'];
      if (file !== undefined) writeFileSync(file, JSON.stringify(counts));
    });
  }
}

// Mocha loads a reporter as a module's default export.
export default CountingReporter;
