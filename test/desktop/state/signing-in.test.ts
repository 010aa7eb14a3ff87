import { expect } from 'chai';
import { signInAt } from '../../../desktop/core-requests.ts';
import type { Failure } from '../../../desktop/ipc.ts';

const busy = (retryAfterSeconds: number | null): Failure => ({
  kind: 'refused',
  code: 'too-many-requests',
  detail: 'Too many people are signing in. Try again in 1 second.',
  errors: [],
  retryAfterSeconds,
});

describe('signing in', () => {
  /** Tries to sign in while the core gives these responses in order. @returns the number of attempts, and the result of the last one */
  async function attempts(...answers: Failure[]) {
    let count = 0;
    const send = async () => ({ ok: false as const, failure: answers[count++] ?? { kind: 'session-ended' as const } });
    const result = await signInAt(send, { server: '', email: 'ada@example.com', password: 'p', keepSignedIn: null });
    return { count, failure: result.ok ? null : result.failure };
  }

  it('is retried if too many other users are signing in', async () => {
    const { count, failure } = await attempts(busy(0.01), busy(0.01));
    expect([count, failure?.kind === 'refused' && failure.code]).to.deep.equal([3, 'invalid']);
  });

  it("isn't retried if the wait would be long or is unknown", async () => {
    expect(await attempts(busy(900))).to.deep.equal({ count: 1, failure: busy(900) });
    expect(await attempts(busy(null))).to.deep.equal({ count: 1, failure: busy(null) });
    expect((await attempts({ kind: 'unreachable', detail: '' })).count).to.equal(1);
  });
});
