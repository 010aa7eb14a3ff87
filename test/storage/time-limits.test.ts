import { expect } from 'chai';
import { settling } from '../../core/dialer/loop.ts';
import { timeouts } from '../../core/dialer/webhook.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { deadlines } from '../../core/domain/deadlines.ts';
import { timeLimits } from '../../core/storage/engine/postgres/postgres-connection.ts';

describe('time limits of the storage and dialer', () => {
  const lease = dialingLimits.lease.toMillis();
  /** How far apart the clocks of cores that dial may be: see core/docs/operations/install.md. */
  const leaseSkew = 5_000;
  const ordered: [string, number, number][] = [
    ["a request's deadline is longer than the longest wait for PostgreSQL", timeLimits.connection + timeLimits.batch, deadlines.answer],
    ["PostgreSQL's own limit ends a statement before the core's limit does", timeLimits.server, timeLimits.statement],
    ["a provider's time to respond includes connecting", timeouts.connect, timeouts.answer],
    [
      "a lease outlasts a hand-off and the slowest statement that settles it, even by another core's clock",
      timeouts.answer + timeLimits.statement + settling.every + leaseSkew,
      lease,
    ],
  ];
  for (const [rule, shorter, longer] of ordered) it(rule, () => expect(shorter).to.be.below(longer));
});
