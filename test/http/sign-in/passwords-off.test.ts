import { expect } from 'chai';
import { adminCommand } from '../../../core/program.ts';
import { adminOn } from '../../support/commands.ts';
import { startCoreHere } from '../../support/core.ts';
import { emptyDatabase } from '../../support/databases.ts';
import { ask, readCode } from '../../support/http.ts';
import { openWithProvider, type ProviderHarness, signInWithProvider, TestBrowser } from '../../support/identity-provider.ts';
import { cheapPasswords } from '../../support/ports.ts';
import { password, signIn } from '../../support/tenants.ts';

describe('with PASSWORD_SIGN_IN=off', () => {
  let harness: ProviderHarness;
  const checked: string[] = [];
  before(async () => {
    const passwords = cheapPasswords();
    const verify: typeof passwords.verify = (find, given, origin) => {
      checked.push(given);
      return passwords.verify(find, given, origin);
    };
    harness = await openWithProvider({ environment: { PASSWORD_SIGN_IN: 'off' }, passwords: { ...passwords, verify } });
  });
  after(() => harness.close());

  /** Returns a staff user's browser. */
  async function staff(): Promise<TestBrowser> {
    harness.provider.person = { subject: 'stan-there', email: 'stan@example.com', isVerified: true };
    const browser = new TestBrowser();
    expect(await signInWithProvider(harness, browser)).to.equal('done');
    return browser;
  }
  const refused = (answer: { status: number; json: Readonly<Record<string, unknown>> }) => {
    expect([answer.status, String(answer.json['detail'])]).to.deep.equal([
      403,
      'Passwords are turned off. Sign in with Example Corp instead.',
    ]);
  };

  it('every password is refused, even the correct one', async () => {
    const answer = await ask('POST', `${harness.url}/console/session`, { body: { email: 'stan@example.com', password } });
    refused(answer);
    expect(answer.headers['set-cookie']).to.equal(undefined);
    expect(checked).to.deep.equal([]);
  });

  it("passwords can't be changed, reset or used to set up a second factor", async () => {
    const browser = await staff();
    const { users } = harness.tenants;
    refused(await browser.send('POST', `${harness.url}/console/password`, { currentPassword: password, newPassword: 'another one' }));
    refused(await browser.send('POST', `${harness.url}/console/users/${users.account.id}/password`, {}));
    const enrolled = await browser.send('POST', `${harness.url}/console/second-factor`, { currentPassword: password });
    expect([enrolled.status, readCode(enrolled)]).to.deep.equal([403, 'forbidden']);
    expect(checked).to.deep.equal([]);
  });

  it('a new user gets no password, and signs in with the provider', async () => {
    const browser = await staff();
    const body = { email: 'new@example.com', name: 'Nele New', userType: 'staff' };
    const answer = await browser.send('POST', `${harness.url}/console/users`, body);
    expect([answer.status, answer.json['password']]).to.deep.equal([201, null]);
    harness.provider.person = { subject: 'nele-there', email: 'new@example.com', isVerified: true };
    const own = new TestBrowser();
    expect(await signInWithProvider(harness, own)).to.equal('done');
    const session = await own.open(`${harness.url}/console/session`);
    expect(session.json).not.to.have.property('passwordChangeDue');
  });

  it('the operator can still set a password, which works once passwords are back on', async () => {
    const { database, url } = harness;
    const { password: made } = await adminOn(database).json('user', 'password', 'stan@example.com');
    refused(await ask('POST', `${url}/console/session`, { body: { email: 'stan@example.com', password: made } }));
    const core = await startCoreHere(database);
    try {
      expect(await signIn(core.url, 'stan@example.com', made)).to.contain('callkey_session_');
    } finally {
      await core.close();
    }
  });

  it('sessions that began with a password end for good, even if passwords are turned on again', async () => {
    const { database, provider, url } = harness;
    const before = await startCoreHere(database);
    const { password: made } = await adminOn(database).json('user', 'password', 'oda@example.com');
    const cookie = await signIn(before.url, 'oda@example.com', made);
    await before.close();
    await (await startCoreHere(database, { environment: { ...provider.environment(url), PASSWORD_SIGN_IN: 'off' } })).close();
    const after = await startCoreHere(database);
    const { status } = await ask('GET', `${after.url}/console/session`, { cookie });
    await after.close();
    expect(status).to.equal(401);
  });

  it('a session that began with a password on another core, which still allows them, is refused', async () => {
    const other = await startCoreHere(harness.database);
    const cookie = await signIn(other.url, 'sue@example.com');
    const statuses = await Promise.all([other.url, harness.url].map((url) => ask('GET', `${url}/console/session`, { cookie })));
    await other.close();
    expect(statuses.map(({ status }) => status)).to.deep.equal([200, 401]);
  });

  it("a first start doesn't create a user with an unusable password, and says what to do", async () => {
    const database = await emptyDatabase('sqlite');
    const core = await startCoreHere(database, {
      environment: { ...harness.provider.environment(harness.url), PASSWORD_SIGN_IN: 'off' },
    });
    await core.close();
    expect(core.firstUser).to.equal(null);
    const advice = `no one can sign in, because there are no users. Run DATABASE_URL=${database} ${adminCommand} user create EMAIL`;
    expect(core.log.filter(({ msg }) => String(msg).includes(advice))).to.have.length(1);
  });
});
