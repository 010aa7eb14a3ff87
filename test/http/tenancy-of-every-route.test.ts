import { expect } from 'chai';
import { tenancyHeader } from '#contract/console/session.ts';
import { type ConsoleRoutes, consoleRoutes } from '#contract/routes.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn, somePhone } from '../support/tenants.ts';

/** The IDs of one account and of what belongs to it. */
type Targets = {
  partner: string;
  account: string;
  campaign: string;
  user: string;
  key: string;
  secondKey: string;
  digest: string;
  call: string;
  entry: string;
  stop: string;
};

/** A request for something that belongs to the account. */
type Attempt = {
  id?: string;
  contactId?: string;
  query?: Record<string, string>;
  body?: object;
  /** The status for a user who is allowed to send the request, if it isn't 2xx. */
  status?: number;
  /** The response to all other users, if it's a success that changes nothing. */
  unchanged?: object;
};

const rules = { addresses: null, callsPerDay: 10 };
const name = 'Renamed';
const timeZone = 'UTC';

/**
 * The request that is sent to each route of the console. `own` means that no request is sent, because the route concerns only the session
 * or the user, or creates something in the user's own scope, and `in the matrix`, because tenancy-matrix.test.ts sends it as every user.
 * The type requires every route, so a new route can't be forgotten. The last requests delete what the earlier requests need.
 */
const attempts: Record<keyof ConsoleRoutes, 'own' | 'in the matrix' | ((targets: Targets) => Attempt)> = {
  signIn: 'own',
  enterCode: 'own',
  showSession: 'own',
  signOut: 'own',
  changePassword: 'own',
  enrollSecondFactor: 'own',
  confirmSecondFactor: 'own',
  showSecondFactor: 'own',
  renewRecoveryCodes: 'own',
  removeSecondFactor: 'own',
  showSignIn: 'own',
  startOidc: 'own',
  finishOidc: 'own',
  signOutOfProvider: 'own',
  handOver: 'own',
  signInFromApp: 'own',
  createApiKey: 'own',
  setUp: 'own',
  createPartner: 'own',
  recordExport: 'own',
  showCallingHours: 'in the matrix',
  setCallingHours: 'in the matrix',
  showNumbers: 'in the matrix',
  setNumbers: 'in the matrix',
  checkNumber: 'in the matrix',
  showOptOuts: 'in the matrix',
  setOptOuts: 'in the matrix',
  selectTenancy: ({ account }) => ({ body: { kind: 'account', id: account } }),
  searchTenancies: () => ({ query: { search: 'Blue' } }),
  listApiKeys: () => ({}),
  identifyApiKey: ({ digest }) => ({ body: { sha256: digest }, unchanged: { apiKey: null } }),
  showApiKey: ({ key }) => ({ id: key, query: { timeZone } }),
  changeApiKey: ({ key }) => ({ id: key, body: rules }),
  previewRevocation: ({ key }) => ({ id: key }),
  listAccounts: ({ account }) => ({ query: { search: account } }),
  listCampaigns: ({ campaign }) => ({ query: { search: campaign } }),
  listDirectoryPartners: () => ({ query: { search: 'Northwind' } }),
  renamePartner: ({ partner }) => ({ id: partner, body: { name } }),
  listDirectoryAccounts: ({ partner }) => ({ query: { partner } }),
  createAccount: ({ partner }) => ({ body: { name: 'New', partnerId: partner } }),
  renameAccount: ({ account }) => ({ id: account, body: { name } }),
  listDirectoryCampaigns: ({ account }) => ({ query: { account } }),
  createCampaign: ({ account }) => ({ body: { name: 'New', accountId: account } }),
  changeCampaign: ({ campaign }) => ({ id: campaign, body: { name } }),
  listCalls: ({ campaign }) => ({ id: campaign }),
  listAllCalls: ({ key }) => ({ query: { apiKey: key } }),
  exportCalls: ({ campaign }) => ({ id: campaign }),
  exportAllCalls: ({ key }) => ({ query: { apiKey: key } }),
  summarizeCalls: ({ campaign }) => ({ id: campaign, query: { timeZone } }),
  summarizeAllCalls: ({ key }) => ({ query: { timeZone, apiKey: key } }),
  showCall: ({ campaign, call }) => ({ id: campaign, contactId: call }),
  listUsers: () => ({ query: { search: 'ada' } }),
  createUser: ({ account }) => ({ body: { email: 'new@example.com', name: 'New', userType: 'account', accountId: account } }),
  previewDeletion: ({ user }) => ({ id: user }),
  changeUser: ({ user }) => ({ id: user, body: { name } }),
  unlinkUser: ({ user }) => ({ id: user, status: 409 }),
  resetPassword: ({ user }) => ({ id: user }),
  resetSecondFactor: ({ user }) => ({ id: user, status: 409 }),
  listActivity: ({ key }) => ({ query: { subject: key } }),
  listActivityFacets: () => ({}),
  exportActivity: ({ key }) => ({ query: { subject: key } }),
  listDoNotCall: () => ({}),
  addDoNotCall: ({ account }) => ({ body: { phones: [somePhone()], reason: 'asked', accountId: account } }),
  exportDoNotCall: () => ({}),
  stopDialing: ({ campaign }) => ({ body: { scope: 'campaign', id: campaign } }),
  listStops: () => ({}),
  showStop: ({ stop }) => ({ id: stop }),
  resumeDialing: ({ stop }) => ({ id: stop }),
  showPace: ({ campaign }) => ({ query: { scope: 'campaign', id: campaign } }),
  setPace: ({ account }) => ({ query: { scope: 'account', id: account }, body: { perSecond: 1, liveCalls: null } }),
  showContactLimits: ({ account }) => ({ query: { scope: 'account', id: account } }),
  setContactLimits: ({ partner }) => ({ query: { scope: 'partner', id: partner }, body: { limits: null } }),
  liftDoNotCall: ({ entry }) => ({ id: entry, body: { reason: 'Test' } }),
  revokeApiKeys: ({ secondKey }) => ({ body: { ids: [secondKey] }, unchanged: { revoked: [], gone: [secondKey] } }),
  revokeApiKey: ({ key }) => ({ id: key }),
  showRevokedApiKey: ({ key }) => ({ id: key }),
  deleteUser: ({ user }) => ({ id: user }),
  deletePartner: ({ partner }) => ({ id: partner, status: 409 }),
  deleteAccount: ({ account }) => ({ id: account, status: 409 }),
  deleteCampaign: ({ campaign }) => ({ id: campaign, status: 409 }),
};

describe('every route of the console', () => {
  onEachDatabase((kind) => {
    const its = openOnce(() => openCore({ kind }));
    let targets: Targets;
    const headers = new Map<string, { cookie: string; headers?: Record<string, string> }>();

    before(async () => {
      const { url } = its.core;
      const { tenants } = its;
      for (const who of ['ada', 'sue', 'oda', 'otto', 'stan']) headers.set(who, { cookie: await signIn(url, `${who}@example.com`) });
      // With the partner selected, Stan sees everything that belongs to it, and may do everything.
      headers.set('stan', { cookie: headers.get('stan')?.cookie ?? '', headers: { [tenancyHeader]: `partner/${tenants.partner.id}` } });
      const ada = headers.get('ada')?.cookie ?? '';
      const { id: key, keyValue } = await createKey(url, ada);
      const { id: secondKey } = await createKey(url, ada);
      const call = textAt(await placeCall(url, tenants.campaign.id, keyValue), 'contactId');
      const stopped = await ask('POST', `${url}/console/stops`, { cookie: ada, body: { scope: 'account', id: tenants.account.id } });
      const stop = Object(stopped.json).stop.id;
      const { randomness, clock, stores } = its.direct.ports;
      const [entry, owner] = [randomness.id(), { accountId: tenants.account.id, partnerId: tenants.partner.id }];
      const numbers = { owner, numbers: [{ id: entry, phone: somePhone() }], createdAt: clock.now(), note: null, endsAt: null };
      await stores.doNotCall.addNumbers({ ...numbers, reason: 'asked', source: 'admin', call: null, createdBy: null }, clock.now(), null);
      const { partner, account, campaign, users } = tenants;
      const ids = { partner: partner.id, account: account.id, campaign: campaign.id, user: users.account.id };
      targets = { ...ids, key, secondKey, digest: toDigest(keyValue), call, entry, stop };
    });

    const send = (who: string, route: keyof ConsoleRoutes, { id = '', contactId = '', query = {}, body }: Attempt) => {
      const { method, path } = consoleRoutes[route];
      const address = path.replace(':id', id).replace(':contactId', contactId);
      return ask(method, `${its.core.url}${address}?${new URLSearchParams(query)}`, { ...headers.get(who), ...(body ? { body } : {}) });
    };

    for (const [route, attempt] of Object.entries(attempts) as [keyof ConsoleRoutes, (typeof attempts)[keyof ConsoleRoutes]][]) {
      if (typeof attempt === 'string') continue;
      it(`${route} neither shows nor changes what belongs to another account`, async () => {
        const { status, unchanged, ...request } = attempt(targets);
        for (const outsider of ['sue', 'oda', 'otto']) {
          const answer = await send(outsider, route, request);
          if (unchanged) expect(answer.json).to.deep.equal(unchanged);
          else if (consoleRoutes[route].method === 'GET' && answer.status === 200)
            for (const id of Object.values(targets)) expect(answer.text).not.to.include(id);
          else expect(answer.status, answer.text).to.be.oneOf([403, 404, 422]);
        }
        // Stan is allowed to send this request. If he got an error, too, the refusals above could have another reason.
        const allowed = await send('stan', route, request);
        expect(allowed.status, allowed.text).to.satisfy((got: number) => (status === undefined ? got < 300 : got === status));
      });
    }
  });
});
