import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Files that are mutated together, and their tests. The fastest tests come first, since a mutant's run ends at the first failure. */
export type Folder = { name: string; sources: readonly string[]; tests: readonly string[] };

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the files in a folder with these names or patterns. */
const named = (folder: string, names: string, ending = '.ts') =>
  names.split(/\s+/).flatMap((name) => globSync(`${folder}/${name}${ending}`, { cwd: root }).sort());
const tests = (folder: string, names = '*') => named(`test/${folder}`, names, '.test.ts');

export const folders: readonly Folder[] = [
  {
    name: 'core/contract',
    // Routes are omitted, because their complete text is compared with core/openapi.json.
    sources: named('core/contract', '**/*').filter((file) => !file.startsWith('core/contract/routes/')),
    tests: [
      ...tests('contract', 'openapi routes refusals validate signature key-value server-address problems text calls phone expiry'),
      ...tests('contract', 'tls-checks networks node-release'),
      ...tests('domain', 'calling-hours'),
    ],
  },
  {
    name: 'core/domain',
    sources: named('core/domain', '**/*').filter((file) => !file.startsWith('core/domain/sign-in/')),
    tests: tests('domain'),
  },
  {
    name: 'core/domain/sign-in',
    sources: named('core/domain/sign-in', '*'),
    tests: [...tests('domain', 'networks devices totp throttle sessions fair-queue'), ...tests('http/sign-in')],
  },
  // dialer.test.ts is omitted, because it starts a core for each test.
  { name: 'core/dialer', sources: named('core/dialer', '*'), tests: tests('dialer', 'simulated webhook loop schedule') },
  {
    name: 'core/storage',
    // The rules for calls, keys, sessions, counters, batches and errors. Omitted: rows that are read and
    // written unchanged, connections and files. Their failures need processes, locks and disks (test/process, npm run chaos).
    sources: [
      ...named('core/storage/engine', 'batch chunks errors error-text postgres/postgres-hosts'),
      ...named('core/storage/calls', 'call-stages calls queued-calls read-back retention'),
      ...named('core/storage/dialing', 'dialing claims overdue-calls'),
      ...named('core/storage', 'audit/audit-chain keys/key-use keys/revocation directory/sessions directory/throttle'),
    ],
    tests: [
      ...tests('storage', 'errors error-text postgres-hosts chunks batch batch-deadlines sessions audit-chain calls key-use last-used'),
      ...tests('storage', 'dialing outcomes call-stages call-statements throttle cancelled-calls cancelling overdue-calls'),
    ],
  },
  {
    name: 'core/http',
    // Everything that runs before the handlers. Omitted: handlers and views, which the schemas and test/http cover, and browser files.
    sources: [
      ...named('core/http/middleware', 'body client-address context csrf not-found problems request-id request-path session'),
      ...named('core/http', 'on-demand outcomes'),
    ],
    tests: tests(
      'http',
      'guards outcome-reports error-responses request-id refusals key-ends on-demand invalid-calls refusals-in-the-log sign-in/sessions sign-in/session-origins sign-in/changing-password',
    ),
  },
  {
    name: 'cli',
    // Everything that must survive a crash. Omitted: the keychain, and the commands, which run as processes.
    sources: named('cli', 'client/retries client/answer batch/run-journal batch/journal-file keys/key-store state/durable-file'),
    tests: tests('cli', 'retries key-store run-journal durable-file'),
  },
];
