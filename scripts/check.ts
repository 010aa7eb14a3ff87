// Everything that has to hold: lint, types and every test. Ends with one line that counts, and fails if anything failed or nothing ran.
// `npm test -- --grep revoke` passes what follows on to mocha.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

function run(name: string, command: string[], environment: Record<string, string> = {}): boolean {
  process.stdout.write(`\n── ${name}\n`);
  const [file = '', ...args] = command;
  const { status } = spawnSync(file, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...environment } });
  return status === 0;
}

const bin = (name: string) => join(root, 'node_modules', '.bin', name);
const directory = mkdtempSync(join(tmpdir(), 'callkey-check-'));
const countsFile = join(directory, 'counts.json');

const lint = run('lint', [bin('biome'), 'check', '--error-on-warnings', '.']);
// The page, and what the tests do in it, know the DOM; nothing else does.
const projects = ['.', 'desktop/renderer', 'test/desktop'];
const types = projects.every((project) => run(`types of ${project}`, [bin('tsc'), '-p', project]));
const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js');
const tests = run('tests', [process.execPath, mocha, '--reporter', 'test/support/reporter.ts', ...process.argv.slice(2)], {
  COUNTS_FILE: countsFile,
});

type Counts = { passed: number; failed: number; skipped: string[] };
function readCounts(): Counts {
  try {
    return JSON.parse(readFileSync(countsFile, 'utf8'));
  } catch {
    return { passed: 0, failed: 0, skipped: [] };
  }
}
const counts = readCounts();
rmSync(directory, { recursive: true, force: true });

// What mocha failed without counting it, such as a file that does not load, counts as one.
const failedTests = tests ? counts.failed : Math.max(1, counts.failed);
const checks = [lint, types];
const passed = counts.passed + checks.filter((ok) => ok).length;
const failed = failedTests + checks.filter((ok) => !ok).length;
for (const reason of counts.skipped) process.stdout.write(`skipped: ${reason}\n`);
process.stdout.write(`\n${passed} passed, ${failed} failed, ${counts.skipped.length} skipped\n`);
process.exitCode = failed > 0 || counts.passed === 0 ? 1 : 0;
