import { globSync } from 'node:fs';

/** What is mutated together, and the tests that have to notice: the cheapest first, since the first that fails ends a mutant. */
export type Folder = { name: string; sources: readonly string[]; without?: readonly string[]; tests: readonly string[] };

const overHttp = ['test/http'];

export const folders: readonly Folder[] = [
  {
    name: 'core/contract',
    sources: ['core/contract/*.ts'],
    // Their text is compared with core/openapi.json as a whole.
    without: ['core/contract/openapi*.ts'],
    tests: [
      ...['openapi', 'refusals', 'validate', 'signature', 'key-value', 'server-address', 'problems', 'text'].map(
        (name) => `test/contract/${name}.test.ts`,
      ),
      ...['calls', 'phone', 'expiry'].map((name) => `test/contract/${name}.test.ts`),
    ],
  },
  { name: 'core/domain', sources: ['core/domain/*.ts'], tests: ['test/domain'] },
  { name: 'core/dialer', sources: ['core/dialer/*.ts'], tests: ['test/dialer'] },
  {
    name: 'core/storage',
    sources: ['core/storage/*.ts'],
    // Connections and files: what can go wrong with them needs processes, locks and disks (test/process, npm run chaos).
    without: ['core/storage/{postgres,sqlite}*.ts', 'core/storage/{index,open}.ts'],
    tests: ['test/storage', 'test/dialer', ...overHttp],
  },
  {
    name: 'core/http',
    sources: [
      'body',
      'client-address',
      'context',
      'csrf',
      'not-found',
      'on-demand',
      'outcomes',
      'problems',
      'request-id',
      'request-path',
      'session',
    ].map((name) => `core/http/${name}.ts`),
    tests: overHttp,
  },
  {
    name: 'cli',
    sources: ['cli/client/retries.ts', 'cli/batch/run-journal.ts', 'cli/keys/key-store.ts', 'cli/durable-file.ts'],
    tests: ['test/cli/retries.test.ts', 'test/cli/key-store.test.ts', 'test/cli/choose-run.test.ts'],
  },
];

/** Spawn processes, which do not see the mutant, or need a build. */
const elsewhere = ['test/http/web-console.test.ts'];

export function sourcesOf({ sources, without = [] }: Folder): string[] {
  return globSync([...sources], { exclude: [...without] }).sort();
}

export function testsOf({ tests }: Folder): string[] {
  const files = tests.flatMap((path) => (path.endsWith('.ts') ? path : globSync(`${path}/*.test.ts`).sort()));
  return files.filter((file) => !elsewhere.includes(file));
}
