import { expect } from 'chai';
import { z } from 'zod';
import { sessionRoutes } from '#contract/console/session.ts';
import type { ProblemCode } from '#contract/problems.ts';
import { withTenancyHeader } from '../../../desktop/core-requests.ts';
import type { Failure } from '../../../desktop/ipc.ts';

describe('a refused request about the session, in a tenancy', () => {
  const refused = (code: ProblemCode): Failure => ({ kind: 'refused', code, detail: '', errors: [], retryAfterSeconds: null });

  /** @returns the headers of each request that was sent */
  async function listSent(code: ProblemCode): Promise<object[]> {
    const sent: object[] = [];
    const { send, setTenancy } = withTenancyHeader(async (_request, headers) => {
      sent.push(headers);
      return { ok: false, failure: refused(code) };
    });
    setTenancy({ kind: 'account', id: 'blue' });
    const { method, path } = sessionRoutes.showSession;
    await send({ method, path, schema: z.unknown() });
    return sent;
  }

  it('is repeated without the tenancy if the user has no access to it', async () => {
    expect(await listSent('forbidden')).to.deep.equal([{ 'Callkey-Tenancy': 'account/blue' }, {}]);
  });

  it("isn't repeated after a failure that says nothing about the tenancy", async () => {
    expect(await listSent('unavailable')).to.deep.equal([{ 'Callkey-Tenancy': 'account/blue' }]);
  });
});
