import { globSync } from 'node:fs';

/** What is mutated together, and the tests that have to notice: the cheapest first, since the first that fails ends a mutant. */
export type Folder = { name: string; sources: readonly string[]; without?: readonly string[]; tests: readonly string[] };

export const folders: readonly Folder[] = [
  {
    name: 'core/contract',
    sources: ['core/contract/**/*.ts'],
    // Their text is compared with core/openapi.json as a whole.
    without: ['core/contract/routes/*.ts'],
    tests: [
      ...['openapi', 'refusals', 'validate', 'signature', 'key-value', 'server-address', 'problems', 'text'].map(
        (name) => `test/contract/${name}.test.ts`,
      ),
      ...['calls', 'phone', 'expiry', 'tls-checks'].map((name) => `test/contract/${name}.test.ts`),
    ],
  },
  { name: 'core/domain', sources: ['core/domain/**/*.ts'], tests: ['test/domain'] },
  {
    name: 'core/dialer',
    sources: ['core/dialer/*.ts'],
    // dialer.test.ts: a core a test.
    tests: ['simulated', 'webhook', 'loop'].map((name) => `test/dialer/${name}.test.ts`),
  },
  {
    name: 'core/storage',
    // What may happen to a call, a key, a session and a counter, and what becomes of a batch and of an error. Not: rows that are read and
    // written as they are, connections and files. What goes wrong with those needs processes, locks and disks (test/process, npm run chaos).
    sources: [
      ...['batch', 'chunks', 'errors', 'error-text', 'postgres/postgres-hosts'].map((name) => `engine/${name}`),
      ...['call-stages', 'calls', 'dialing', 'overdue-calls', 'queued-calls', 'read-back', 'retention'].map((name) => `calls/${name}`),
      ...['audit/audit-chain', 'keys/key-use', 'keys/revocation', 'directory/sessions', 'directory/throttle'],
    ].map((name) => `core/storage/${name}.ts`),
    tests: [
      ...['errors', 'error-text', 'postgres-hosts', 'chunks', 'batch', 'sessions', 'audit-chain', 'calls', 'key-use', 'last-used'],
      ...['dialing', 'call-stages', 'throttle', 'cancelling'],
    ].map((name) => `test/storage/${name}.test.ts`),
  },
  {
    name: 'core/http',
    // What stands before the handlers. Not: handlers and views, which the contract's schemas and test/http hold, and what a browser loads.
    sources: [
      ...['body', 'client-address', 'context', 'csrf', 'not-found', 'problems', 'request-id', 'request-path', 'session'].map(
        (name) => `middleware/${name}`,
      ),
      ...['on-demand', 'outcomes'],
    ].map((name) => `core/http/${name}.ts`),
    tests: ['guards', 'request-id', 'refusals', 'key-ends', 'on-demand', 'refusals-in-the-log', 'sessions'].map(
      (name) => `test/http/${name}.test.ts`,
    ),
  },
  {
    name: 'cli',
    // What must hold through a crash. Not: the keychain, and the commands, which run as processes.
    sources: ['client/retries', 'batch/run-journal', 'keys/key-store', 'durable-file'].map((name) => `cli/${name}.ts`),
    tests: ['retries', 'key-store', 'run-journal', 'durable-file'].map((name) => `test/cli/${name}.test.ts`),
  },
];

export function sourcesOf({ sources, without = [] }: Folder): string[] {
  return globSync([...sources], { exclude: [...without] }).sort();
}

export function testsOf({ tests }: Folder): string[] {
  return tests.flatMap((path) => (path.endsWith('.ts') ? path : globSync(`${path}/*.test.ts`).sort()));
}
