import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { directoryAccountsSchema, directoryCampaignsSchema, directoryPartnersSchema } from '#contract/console/directory.ts';
import { sessionSchema } from '#contract/console/session.ts';
import { problemSchema } from '#contract/problems.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/directory.ts';
import { createUser } from '../../core/domain/directory/users.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, openDirect, password, placeCall, signIn } from '../support/tenants.ts';

const names = { partner: 'Northwind Voice', account: 'Blue Clinic', campaign: 'Appointment reminders' };

describe('setting up the first partner, account and campaign', () => {
  onEachDatabase((kind) => {
    let cores: RunningCore[];
    let cookie: string;

    before(async () => {
      const database = await freshDatabase(kind);
      cores = [await startCoreHere(database), await startCoreHere(database)];
      const direct = await openDirect(database);
      const stan = { email: 'stan@example.com', name: 'Stan', userType: 'staff', accountId: null, partnerId: null } as const;
      await createUser(direct.ports, operator, stan, password);
      await direct.close();
      cookie = await signIn(cores[0]?.url ?? '', stan.email);
    });
    after(async () => {
      for (const core of cores) await core.close();
    });

    const setUp = (body: object, core = 0) => ask('POST', `${cores[core]?.url}/console/setup`, { cookie, body });

    it('reports all invalid names in one response', async () => {
      const answer = await setUp({ partner: ' ', account: 'Blue\u202eClinic', campaign: 'x'.repeat(201) });
      expect(answer.status).to.equal(422);
      expect(problemSchema.parse(answer.json).errors?.map(({ path }) => path)).to.deep.equal(['partner', 'account', 'campaign']);
    });

    it('creates them once, even through two cores at the same time, and selects the account', async () => {
      const answers = await Promise.all([0, 1, 0, 1].map((core) => setUp(names, core)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, 409, 409, 409]);
      const created = answers.find(({ status }) => status === 201);
      if (!created) throw new Error('Nothing was created.');
      expect(['partner', 'account', 'campaign'].map((what) => textAt(created, what, 'name'))).to.deep.equal(Object.values(names));
      const url = cores[0]?.url ?? '';
      const { tenancy } = sessionSchema.parse((await ask('GET', `${url}/console/session`, { cookie })).json);
      const id = textAt(created, 'account', 'id');
      expect(tenancy).to.deep.equal({ kind: 'account', id, name: names.account, partnerName: names.partner });
      const { partners } = directoryPartnersSchema.parse((await ask('GET', `${url}/console/directory/partners`, { cookie })).json);
      expect(partners).to.deep.equal([{ id: textAt(created, 'partner', 'id'), name: names.partner, accounts: 1 }]);
      const { keyValue } = await createKey(url, cookie);
      expect((await placeCall(url, textAt(created, 'campaign', 'id'), keyValue)).status).to.equal(202);
    });
  });
});

describe('the directory', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));
    let cookies: Record<'stan' | 'pat' | 'ada', string>;

    before(async () => {
      const { url } = harness.core;
      const as = (name: string) => signIn(url, `${name}@example.com`);
      cookies = { stan: await as('stan'), pat: await as('pat'), ada: await as('ada') };
    });

    const at = (path: string) => `${harness.core.url}/console/${path}`;
    const as = (who: keyof typeof cookies, body?: object) => ({ cookie: cookies[who], ...(body ? { body } : {}) });

    it('allows the first setup only for staff, and only if there are no partners yet', async () => {
      expect((await ask('POST', at('setup'), as('stan', names))).status).to.equal(409);
      expect((await ask('POST', at('setup'), as('pat', names))).status).to.equal(403);
    });

    it('creates and renames entries, and records each change for the users who can see the entry', async () => {
      const { json } = await ask('POST', at('directory/partners'), as('stan', { name: 'Eastwind' }));
      expect(json).to.have.nested.property('partner.accounts', 0);
      const added = await ask(
        'POST',
        at('directory/accounts'),
        as('pat', { name: ' Yellow  Clinic ', partnerId: harness.tenants.partner.id }),
      );
      const accountId = textAt(added, 'account', 'id');
      expect(added.json['account']).to.deep.equal({
        ...{ id: accountId, name: 'Yellow  Clinic', campaigns: 0 },
        partner: { id: harness.tenants.partner.id, name: harness.tenants.partner.name },
      });
      const created = await ask('POST', at('directory/campaigns'), as('pat', { name: 'Recalls', accountId }));
      const campaignId = textAt(created, 'campaign', 'id');
      expect(created.json).to.have.nested.property('campaign.account.id', accountId);
      const renamed = await ask('PATCH', at(`directory/campaigns/${campaignId}`), as('pat', { name: 'Recalls 2027' }));
      expect(textAt(renamed, 'campaign', 'name')).to.equal('Recalls 2027');
      await ask('PATCH', at(`directory/campaigns/${campaignId}`), as('pat', { name: 'Recalls 2027' }));
      await ask('PATCH', at(`directory/accounts/${accountId}`), as('pat', { name: 'Yellow Clinic' }));
      const { campaigns } = directoryCampaignsSchema.parse(
        (await ask('GET', at(`directory/campaigns?account=${accountId}`), as('stan'))).json,
      );
      expect(campaigns.map(({ name, account }) => [name, account.name])).to.deep.equal([['Recalls 2027', 'Yellow Clinic']]);
      const { accounts } = directoryAccountsSchema.parse((await ask('GET', at(`directory/accounts?search=${accountId}`), as('stan'))).json);
      expect(accounts.map(({ campaigns }) => campaigns)).to.deep.equal([1]);

      const { events } = activitySchema.parse((await ask('GET', at('activity'), as('pat'))).json);
      expect(events.slice(0, 4).map(({ action, subject, actor, detail }) => [action, subject.name, actor?.name, detail])).to.deep.equal([
        ['account.changed', 'Yellow Clinic', 'Pat Partner', 'name: Yellow  Clinic → Yellow Clinic'],
        ['campaign.changed', 'Recalls 2027', 'Pat Partner', 'name: Recalls → Recalls 2027'],
        ['campaign.added', 'Recalls', 'Pat Partner', undefined],
        ['account.added', 'Yellow  Clinic', 'Pat Partner', undefined],
      ]);
      expect(events.map(({ subject }) => subject.name)).not.to.include('Eastwind');
    });

    it('deletes what nothing belongs to, and says what is in the way otherwise', async () => {
      const { account, campaign, partner } = harness.tenants;
      const make = async (path: string, body: object) => {
        const { json } = await ask('POST', at(`directory/${path}`), as('stan', body));
        return String(Object(Object.values(json)[0]).id);
      };
      const remove = (path: string, who: keyof typeof cookies = 'pat') => ask('DELETE', at(`directory/${path}`), as(who));
      const partnerId = await make('partners', { name: 'Short' });
      const accountId = await make('accounts', { name: 'Short', partnerId });
      const campaignId = await make('campaigns', { name: 'Short', accountId });
      for (const [path, who, status, detail] of [
        [`partners/${partnerId}`, 'pat', 403, 'Only service staff can manage partners.'],
        [`accounts/${accountId}`, 'ada', 403, 'Only service staff'],
        [`accounts/${accountId}`, 'pat', 404, "This account doesn't exist"],
        [`partners/${partnerId}`, 'stan', 409, "Short can't be deleted, because it has 1 account."],
        [`accounts/${accountId}`, 'stan', 409, "Short can't be deleted, because it has 1 campaign."],
        [`partners/${partner.id}`, 'stan', 409, "Northwind Voice can't be deleted, because it has 3 accounts, "],
      ] as const) {
        if (status === 409 && path.includes(partner.id)) await createKey(harness.core.url, cookies.pat);
        const answer = await remove(path, who);
        expect([path, answer.status]).to.deep.equal([path, status]);
        expect(textAt(answer, 'detail')).to.contain(detail);
      }
      const key = await createKey(harness.core.url, cookies.ada);
      expect((await placeCall(harness.core.url, campaign.id, key.keyValue)).status).to.equal(202);
      expect(textAt(await remove(`campaigns/${campaign.id}`), 'detail')).to.contain('because it has calls.');
      expect(textAt(await remove(`accounts/${account.id}`), 'detail')).to.match(/1 campaign, \d users, and 1 API key/);
      for (const path of [`campaigns/${campaignId}`, `accounts/${accountId}`, `partners/${partnerId}`]) {
        expect((await remove(path, 'stan')).status, path).to.equal(204);
        expect((await remove(path, 'stan')).status, path).to.equal(404);
      }
      const deleted = await harness.direct.storage.database
        .read('audit_events')
        .whereLike('action', '%.deleted')
        .orderBy('id')
        .pluck('action');
      expect(deleted).to.deep.equal(['campaign.deleted', 'account.deleted', 'partner.deleted']);
    });

    it('never deletes a campaign in which a call is being placed', async () => {
      const { keyValue } = await createKey(harness.core.url, cookies.pat);
      const { account } = harness.tenants;
      const outcomes = new Set<string>();
      for (let n = 0; n < 20; n++) {
        const { id } = await createCampaign(harness.direct.ports, operator, `Race ${n}`, account.id);
        const [placed, removed] = await Promise.all([
          placeCall(harness.core.url, id, keyValue),
          ask('DELETE', at(`directory/campaigns/${id}`), as('pat')),
        ]);
        outcomes.add(`${placed.status} ${removed.status}`);
        const stored = await harness.direct.storage.database.read('campaigns').where({ id });
        expect(stored, `${placed.status} ${removed.status}`).to.have.length(placed.status === 202 ? 1 : 0);
      }
      expect([...outcomes]).to.satisfy((all: string[]) => all.every((one) => ['202 409', '403 204'].includes(one)));
    });

    it('refuses names with invisible characters, unknown parents, and changes to unknown entries', async () => {
      const { account, partner } = harness.tenants;
      const statuses = [
        await ask('PATCH', at(`directory/accounts/${account.id}`), as('stan', { name: 'Blue\u200bClinic' })),
        await ask('POST', at('directory/accounts'), as('stan', { name: 'A', partnerId: account.id })),
        await ask('POST', at('directory/campaigns'), as('stan', { name: 'C', accountId: partner.id })),
        await ask('PATCH', at(`directory/campaigns/${account.id}`), as('stan', { name: 'C' })),
        await ask('PATCH', at('directory/partners/no.id'), as('stan', { name: 'C' })),
      ].map(({ status }) => status);
      expect(statuses).to.deep.equal([422, 422, 422, 404, 404]);
    });
  });
});
