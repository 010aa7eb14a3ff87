import { expect } from 'chai';
import { sessionLimits } from '../../../core/domain/sign-in/sessions.ts';
import { type RunningCore, startCoreHere } from '../../support/core.ts';
import { ask, readCookies, readSetCookies } from '../../support/http.ts';
import { databaseWithTenants, password, signIn } from '../../support/tenants.ts';

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
  { one: [old], other: [old] },
  { one: [old, renewed], other: [old] },
  { one: [old, renewed], other: [old, renewed] },
  { one: [renewed, old], other: [old, renewed] },
  { one: [renewed, old], other: [renewed, old] },
];

describe('replacing session secrets on two cores', () => {
  let database: string;
  const cores = new Map<string, RunningCore>();
  beforeEach(async () => {
    ({ database } = await databaseWithTenants('sqlite'));
  });
  afterEach(async () => {
    for (const core of cores.values()) await core.close();
    cores.clear();
  });

  /** Returns a core with these secrets, as it would be after a restart. */
  async function coreWith(secrets: string[]): Promise<RunningCore> {
    const listed = secrets.join(',');
    const core = cores.get(listed) ?? (await startCoreHere(database, { environment: { SESSION_SECRETS: listed } }));
    cores.set(listed, core);
    return core;
  }

  /**
   * Sends requests to a core with each of these lists of secrets, one after the other, from each browser. Browsers keep their cookies.
   * @returns the status of each response
   */
  async function visit(secrets: string[][], browsers: { cookie: string }[]): Promise<number[]> {
    const statuses: number[] = [];
    for (const coreSecrets of secrets) {
      const core = await coreWith(coreSecrets);
      for (const browser of browsers) {
        const answer = await ask('GET', `${core.url}/console/session`, { cookie: browser.cookie });
        statuses.push(answer.status);
        if (answer.headers['set-cookie'] !== undefined) browser.cookie = mergeCookies(browser.cookie, readCookies(answer));
      }
      browsers.push({ cookie: await signIn(core.url, 'ada@example.com') });
    }
    return statuses;
  }

  it('keeps all sessions if both cores list the new secret second before either core lists it first', async () => {
    const browsers: { cookie: string }[] = [];
    for (const { one, other } of inTwoSteps) {
      // Requests alternate, so that each core gets sessions signed by the other.
      const statuses = await visit([one, other, one, other], browsers);
      expect(new Set(statuses), `${one} | ${other}`).to.deep.equal(new Set([200]));
    }
  });

  it('writes the cookies again under the new secret, so that the browser still has them after it was closed', async () => {
    const browser = { cookie: '' };
    const visits: string[][] = [];
    for (const secrets of [[old], [renewed, old]]) {
      const core = await coreWith(secrets);
      browser.cookie ||= await signIn(core.url, 'ada@example.com');
      visits.push(readSetCookies(await ask('GET', `${core.url}/console/session`, { cookie: browser.cookie })));
    }
    const [before, after] = visits;
    expect(before).to.deep.equal([]);
    expect(after?.[1]).to.match(/^callkey_session_\w{8}\.sig=[\w-]{20,};/);
    const [, expires = ''] =
      /^callkey_session_\w{8}=[\w-]{43}; path=\/; expires=([^;]+); samesite=strict; httponly$/.exec(after?.[0] ?? '') ?? [];
    expect(Date.parse(expires)).to.be.within(Date.now(), Date.now() + sessionLimits.absolute.toMillis());
  });

  it("loses the sessions signed with the new secret on one core if the other doesn't have it yet", async () => {
    const browsers: { cookie: string }[] = [];
    const statuses = await visit([[renewed, old], [old]], browsers);
    expect(statuses).to.deep.equal([401]);
  });
});

describe('two cores on one host name', () => {
  it("don't touch each other's cookies, even unsigned ones and those with the other's path", async () => {
    const { database } = await databaseWithTenants('sqlite');
    const environments = [{ SESSION_SECRETS: old, PUBLIC_URL: 'http://127.0.0.1/prod/' }, { SESSION_SECRETS: renewed }];
    const cores = await Promise.all(environments.map((environment) => startCoreHere(database, { environment })));
    let browser = 'callkey_session=x; callkey_session.sig=y; callkey_device_0a1b2c3d=x; callkey_device_0a1b2c3d.sig=y';
    const paths: (string | undefined)[] = [];
    for (const core of cores) {
      const answer = await ask('POST', `${core.url}/console/session`, {
        cookie: browser,
        body: { email: 'ada@example.com', password },
      });
      paths.push(...new Set(readSetCookies(answer).map((line) => /path=([^;]+)/.exec(line)?.[1])));
      browser = mergeCookies(browser, readCookies(answer));
    }
    expect(paths).to.deep.equal(['/prod', '/']);
    for (const core of cores) {
      const answer = await ask('GET', `${core.url}/console/session`, { cookie: browser });
      expect([answer.status, readSetCookies(answer)]).to.deep.equal([200, []]);
    }
    const [first] = cores;
    const signedOut = await ask('DELETE', `${first?.url}/console/session`, { cookie: browser });
    browser = mergeCookies(browser, readCookies(signedOut));
    expect((await ask('GET', `${cores[1]?.url}/console/session`, { cookie: browser })).status).to.equal(200);
    for (const core of cores) await core.close();
  });
});
