import { expect } from 'chai';
import type { Ended } from './commands.ts';
import type { sharedIntegrator } from './integrator.ts';

/** Returns what tests of single calls share: the commands in the test's home, and what the core and the network saw of them. */
export function singleCalls(its: ReturnType<typeof sharedIntegrator>) {
  return {
    place: (phone: string, ...more: string[]) => its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone, ...more]),
    cancel: (...more: string[]) => its.home.run(['call', 'cancel', its.tenants.campaign.id, ...more]),
    callsTo: (phone: string) => its.direct.storage.database.read('calls').where({ phone }),
    sentIds: () => its.network.seen.map(({ body }) => String(JSON.parse(body).requestId)),
    /** Returns the result of a command with --json. */
    answer({ code, stdout, stderr }: Ended, expected = 0) {
      expect(code, stderr).to.equal(expected);
      return JSON.parse(stdout);
    },
  };
}
