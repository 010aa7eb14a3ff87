// Runs what takes hours, for every night or before a release. Runs everything even if a part fails, and then exits with 1.
import { spawnSync } from 'node:child_process';
import { missingCitus } from './support/postgres-node.ts';

const walk = (database: string) => `npm run walk -- --database ${database} --for 30m`;
const noCitus = missingCitus();
const noDocker = spawnSync('docker', ['info'], { stdio: 'ignore' }).status !== 0;
const parts: [command: string, missing?: string | false | undefined][] = [
  ['npm run chaos'],
  [walk('sqlite')],
  [walk('postgres')],
  [walk('citus'), noCitus],
  // Opens every screen in every browser engine and in the app.
  ['npm test -- test/desktop/engines test/desktop/accessibility.test.ts'],
  ['docker build --quiet --file core/deploy/Dockerfile --tag callkey-core:soak .', noDocker && "Docker isn't running"],
  ['docker run --rm callkey-core:soak --version', noDocker && "Docker isn't running"],
  ['npm run mutants'],
];
const results = parts.map(([command, missing]) => {
  if (missing) return `skipped: ${command} (${missing})`;
  const [name = '', ...args] = command.split(' ');
  const startedAt = performance.now();
  const { status } = spawnSync(name, args, { env: { ...process.env, ENGINES: 'all' }, stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
  return `${status === 0 ? 'passed' : 'failed'}: ${command} (${Math.round((performance.now() - startedAt) / 60_000)} min)`;
});
process.stdout.write(`\n${results.join('\n')}\n`);
