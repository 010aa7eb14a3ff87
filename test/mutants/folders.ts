import { globSync } from 'node:fs';

/** What is mutated together, and the tests that must notice: the cheapest first, since the first that fails ends a mutant. */
export type Folder = { name: string; sources: readonly string[]; tests: readonly string[] };

/** The files of these names, or patterns, in a folder. */
const named = (folder: string, names: string, ending = '.ts') =>
  names.split(/\s+/).flatMap((name) => globSync(`${folder}/${name}${ending}`).sort());
const tests = (folder: string, names = '*') => named(`test/${folder}`, names, '.test.ts');

export const folders: readonly Folder[] = [
  {
    name: 'core/contract',
    // Not the routes: their text is compared with core/openapi.json as a whole.
    sources: named('core/contract', '**/*').filter((file) => !file.startsWith('core/contract/routes/')),
    tests: tests(
      'contract',
      'openapi routes refusals validate signature key-value server-address problems text calls phone expiry tls-checks',
    ),
  },
  { name: 'core/domain', sources: named('core/domain', '**/*'), tests: tests('domain') },
  // Not dialer.test.ts: a core a test.
  { name: 'core/dialer', sources: named('core/dialer', '*'), tests: tests('dialer', 'simulated webhook loop') },
  {
    name: 'core/storage',
    // What may happen to a call, a key, a session and a counter, and what becomes of a batch and of an error. Not: rows that are read and
    // written as they are, connections and files. What goes wrong with those needs processes, locks and disks (test/process, npm run chaos).
    sources: [
      ...named('core/storage/engine', 'batch chunks errors error-text postgres/postgres-hosts'),
      ...named('core/storage/calls', 'call-stages calls dialing overdue-calls queued-calls read-back retention'),
      ...named('core/storage', 'audit/audit-chain keys/key-use keys/revocation directory/sessions directory/throttle'),
    ],
    tests: [
      ...tests('storage', 'errors error-text postgres-hosts chunks batch sessions audit-chain calls key-use last-used'),
      ...tests('storage', 'dialing call-stages throttle cancelling'),
    ],
  },
  {
    name: 'core/http',
    // What stands before the handlers. Not: handlers and views, which the contract's schemas and test/http hold, and what a browser loads.
    sources: [
      ...named('core/http/middleware', 'body client-address context csrf not-found problems request-id request-path session'),
      ...named('core/http', 'on-demand outcomes'),
    ],
    tests: tests('http', 'guards request-id refusals key-ends on-demand refusals-in-the-log sessions'),
  },
  {
    name: 'cli',
    // What must hold through a crash. Not: the keychain, and the commands, which run as processes.
    sources: named('cli', 'client/retries batch/run-journal keys/key-store state/durable-file'),
    tests: tests('cli', 'retries key-store run-journal durable-file'),
  },
];
