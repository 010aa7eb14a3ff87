import { expect } from 'chai';
import { tenancyHeader } from '#contract/console/session.ts';
import { pathTo } from '#contract/route.ts';
import { consoleRoutes } from '#contract/routes.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser, deleteUser, finishUserChanges } from '../../core/domain/directory/users.ts';
import { fakeClock } from '../support/clock.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { onDemand, password, signIn, somePhone } from '../support/tenants.ts';

const staffIp = '203.0.113.77';
const email = 'secret-staff@example.com';

/** Lets a staff user do something of every kind in the account, and another one who's then deleted. @returns the ID of the first one's key */
async function leaveTraces({ core, direct, tenants }: CoreHarness): Promise<string> {
  const input = { email, name: 'Sasha', userType: 'staff', accountId: null, partnerId: null } as const;
  await createUser(direct.ports, operator, input, password);
  const headers = { [tenancyHeader]: `account/${tenants.account.id}`, 'X-Forwarded-For': staffIp };
  const sasha = { cookie: await signIn(core.url, email), headers };
  const post = async (path: string, body: object) => {
    const answer = await ask('POST', `${core.url}/console/${path}`, { ...sasha, body });
    expect(answer.status, answer.text).to.equal(201);
    return answer;
  };
  const key = await post('api-keys', { name: 'By staff', expiration: { kind: 'none' }, timeZone: 'UTC' });
  const placing = { key: textAt(key, 'keyValue'), body: { contact: { phone: somePhone() } }, headers: { 'X-Forwarded-For': staffIp } };
  expect((await ask('POST', onDemand(core.url, tenants.campaign.id), placing)).status).to.equal(202);
  await post('do-not-call', { phones: ['+493012345678'], reason: 'asked', accountId: tenants.account.id });
  await post('users', { email: 'by-staff@example.com', name: 'Made', userType: 'account' });
  await ask('GET', `${core.url}/console/activity.csv`, sasha);

  const gone = await createUser(direct.ports, operator, { ...input, email: `gone-${email}`, name: 'Gone' }, password);
  await ask('GET', `${core.url}/console/users`, { cookie: await signIn(core.url, `gone-${email}`), headers });
  await deleteUser(direct.ports, operator, gone.user, false);
  await finishUserChanges(direct.ports, new AbortController().signal);
  return textAt(key, 'apiKey', 'id');
}

describe("staff's email and network addresses", () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind, clock, environment: { TRUSTED_PROXIES: '127.0.0.1' } }));
    let keyId: string;
    const clock = fakeClock();
    const get = (path: string, cookie: string, headers = {}) => ask('GET', harness.core.url + path, { cookie, headers });

    before(async () => {
      keyId = await leaveTraces(harness);
      clock.advance({ minutes: 2 });
    });

    for (const who of ['pat', 'tia', 'ada']) {
      it(`reach ${who} through no list, detail, facet, preview or export`, async () => {
        const { tenants } = harness;
        const cookie = await signIn(harness.core.url, `${who}@example.com`);
        const ids = { showApiKey: keyId, previewRevocation: keyId, previewDeletion: tenants.users.account.id };
        const seen: string[] = [];
        for (const [name, route] of Object.entries(consoleRoutes)) {
          if (route.method !== 'GET' || route.by !== 'session') continue;
          const id = Object.entries(ids).find(([key]) => key === name)?.[1] ?? tenants.campaign.id;
          const path = pathTo({ path: route.path as '/:id/:contactId' }, { id, contactId: 'none' });
          const { text } = await get(path, cookie);
          if (text.includes('secret-staff') || text.includes(staffIp)) seen.push(`${path}: ${text}`);
        }
        expect(seen).to.deep.equal([]);
      });
    }

    it('reach other staff', async () => {
      const cookie = await signIn(harness.core.url, 'stan@example.com');
      const headers = { [tenancyHeader]: `account/${harness.tenants.account.id}` };
      for (const path of [`api-keys/${keyId}`, 'activity', 'activity.csv']) {
        const { text } = await get(`/console/${path}`, cookie, headers);
        expect([path, text.includes(email), text.includes(staffIp)]).to.deep.equal([path, true, true]);
      }
    });
  });
});

describe('an email address that is taken in another scope', () => {
  const harness = openOnce(() => openCore());

  it("is refused like one that's taken in the own scope, and only ten can be tried per hour", async () => {
    const cookie = await signIn(harness.core.url, 'tia@example.com');
    const create = (email: string) =>
      ask('POST', `${harness.core.url}/console/users`, { cookie, body: { email, name: 'Someone', userType: 'account' } });
    const [own, elsewhere, staff] = [await create('ada@example.com'), await create('oda@example.com'), await create('stan@example.com')];
    expect([own.status, own.text]).to.deep.equal([409, elsewhere.text]);
    expect([staff.status, staff.text]).to.deep.equal([409, own.text]);
    expect(own.text).not.to.contain('exist');
    for (let tried = 3; tried < 10; tried++) expect((await create('oda@example.com')).status).to.equal(409);
    const blocked = await create('oda@example.com');
    expect([blocked.status, Number(blocked.headers['retry-after']) > 3_000]).to.deep.equal([429, true]);
  });
});
