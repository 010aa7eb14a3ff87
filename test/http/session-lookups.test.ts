import { expect } from 'chai';
import { shareLookups } from '../../core/http/middleware/session.ts';
import { until } from '../support/until.ts';

describe('session lookups', () => {
  let begun: { id: string; end: (found: string) => void; fail: () => void }[];
  const lookUp = () =>
    shareLookups(
      (id: string) =>
        new Promise<string>((resolve, reject) => {
          begun.push({ id, end: resolve, fail: () => reject(new Error('the database is gone')) });
        }),
    );
  beforeEach(() => {
    begun = [];
  });

  it('that arrive while another is in progress share the next lookup, and never use an earlier result', async () => {
    const find = lookUp();
    const first = find('a');
    const late = Array.from({ length: 100 }, () => find('a'));
    begun[0]?.end('signed in');
    expect(await first).to.equal('signed in');
    await until(() => begun.length === 2);
    begun[1]?.end('signed out');
    expect([new Set(await Promise.all(late)), begun.length]).to.deep.equal([new Set(['signed out']), 2]);
    const last = find('a');
    begun[2]?.end('gone');
    expect(await last).to.equal('gone');
  });

  it("don't wait for lookups of another session", () => {
    const find = lookUp();
    void find('a');
    void find('a');
    void find('b');
    expect(begun.map(({ id }) => id)).to.deep.equal(['a', 'b']);
  });

  it('continue after a failed lookup', async () => {
    const find = lookUp();
    const first = find('a').catch(() => 'failed');
    const second = find('a');
    begun[0]?.fail();
    expect(await first).to.equal('failed');
    await until(() => begun.length === 2);
    begun[1]?.end('signed in');
    expect(await second).to.equal('signed in');
  });
});
