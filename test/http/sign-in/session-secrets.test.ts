import { expect } from 'chai';
import { sessionLimits } from '../../../core/domain/sign-in/session-states.ts';
import { startCoreHere } from '../../support/core.ts';
import { ask, readCookies, readSetCookies } from '../../support/http.ts';
import { databaseWithTenants, signIn } from '../../support/tenants.ts';

const [old, renewed] = ['the old secret that signs sessions', 'the new secret that signs sessions'];

/** Returns cookies as a browser keeps them, where a new cookie replaces one with the same name. */
function mergeCookies(kept: string, sent: string): string {
  const pairs = `${kept}; ${sent}`.split('; ').map((pair): [string, string] => [pair.slice(0, pair.indexOf('=')), pair]);
  return [...new Map(pairs).values()].join('; ');
}

/**
 * The secrets of both cores at each step of a change. An operator restarts one core after the other, so their secrets differ in between.
 */
const inTwoSteps = [
  [[old], [old]],
  [[old, renewed], [old]],
  [
    [old, renewed],
    [old, renewed],
  ],
  [
    [renewed, old],
    [old, renewed],
  ],
  [
    [renewed, old],
    [renewed, old],
  ],
];

describe('replacing session secrets on two cores', () => {
  let database: string;
  beforeEach(async () => {
    ({ database } = await databaseWithTenants('sqlite'));
  });

  /**
   * Starts a core with each of these lists of secrets, one after the other, and sends it a request from each browser. Browsers keep their
   * cookies. @returns the status of each response
   */
  async function visit(secrets: string[][], browsers: { cookie: string }[]): Promise<number[]> {
    const statuses: number[] = [];
    for (const coreSecrets of secrets) {
      const core = await startCoreHere(database, { environment: { SESSION_SECRETS: coreSecrets.join(',') } });
      for (const browser of browsers) {
        const answer = await ask('GET', `${core.url}/console/session`, { cookie: browser.cookie });
        statuses.push(answer.status);
        if (answer.headers['set-cookie'] !== undefined) browser.cookie = mergeCookies(browser.cookie, readCookies(answer));
      }
      browsers.push({ cookie: await signIn(core.url, 'ada@example.com') });
      await core.close();
    }
    return statuses;
  }

  it('keeps all sessions if both cores list the new secret second before either core lists it first', async () => {
    const browsers: { cookie: string }[] = [];
    for (const secrets of inTwoSteps) {
      // Requests alternate, so that each core gets sessions signed by the other.
      const statuses = await visit([...secrets, ...secrets], browsers);
      expect(new Set(statuses), secrets.join(' | ')).to.deep.equal(new Set([200]));
    }
  });

  it("gives a cookie's new signature the cookie's expiry, so that the browser still has both after it was closed", async () => {
    const browser = { cookie: '' };
    const visits: string[][] = [];
    for (const secrets of [old, `${renewed},${old}`]) {
      const core = await startCoreHere(database, { environment: { SESSION_SECRETS: secrets } });
      browser.cookie ||= await signIn(core.url, 'ada@example.com');
      visits.push(readSetCookies(await ask('GET', `${core.url}/console/session`, { cookie: browser.cookie })));
      await core.close();
    }
    const [before, after] = visits;
    expect(before).to.deep.equal([]);
    expect(after).to.have.length(1);
    const [, expires = ''] =
      /^callkey_session\.sig=[\w-]{20,}; path=\/; expires=([^;]+); samesite=strict; httponly$/.exec(after?.[0] ?? '') ?? [];
    expect(Date.parse(expires)).to.be.above(Date.now() + sessionLimits.absolute.toMillis());
  });

  it("loses the sessions signed with the new secret on one core if the other doesn't have it yet", async () => {
    const browsers: { cookie: string }[] = [];
    const statuses = await visit([[renewed, old], [old]], browsers);
    expect(statuses).to.deep.equal([401]);
  });
});
