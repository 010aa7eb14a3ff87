import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema } from '#contract/console/api-keys.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { plus } from '../../core/domain/instant.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, overSocket, readCode } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, openDirect, placeCall, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const unknownKey = makeKeyValue(randomBytes);

describe("an API key's addresses", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let behindProxy: RunningCore;
    let cookie: string;
    let key: { id: string; keyValue: string };

    const startBehindProxy = async () => {
      behindProxy = await startCoreHere(harness.database, { clock, environment: { TRUSTED_PROXIES: '127.0.0.1' } });
    };
    before(async () => {
      await startBehindProxy();
      cookie = await signIn(harness.core.url, 'ada@example.com');
    });
    after(() => behindProxy.close());
    beforeEach(async () => {
      key = await createKey(harness.core.url, cookie);
    });

    const limit = (body: object, as = cookie) => ask('PATCH', `${harness.core.url}/console/api-keys/${key.id}`, { cookie: as, body });
    const details = async (core = harness.core, headers = {}) =>
      apiKeyDetailsSchema.parse((await ask('GET', `${core.url}/console/api-keys/${key.id}?timeZone=UTC`, { cookie, headers })).json);
    const placeFrom = (forwardedFor: string | undefined, core = behindProxy, more: object = {}) =>
      ask('POST', onDemand(core.url, harness.tenants.campaign.id), {
        key: key.keyValue,
        body: { contact: { phone: somePhone() }, ...more },
        headers: forwardedFor === undefined ? {} : { 'X-Forwarded-For': forwardedFor },
      });
    const statusFrom = async (forwardedFor: string | undefined, core?: RunningCore) => (await placeFrom(forwardedFor, core)).status;

    it('are returned in canonical form, and as null if there are none', async () => {
      for (const [addresses, shown] of [
        [
          ['192.0.2.7', '::ffff:10.0.0.0/104'],
          ['192.0.2.7/32', '10.0.0.0/8'],
        ],
        [[], null],
        [null, null],
      ])
        expect((await limit({ addresses })).json['apiKey']).to.deep.include({ addresses: shown });
    });

    it('also apply to cancels and invalid bodies', async () => {
      const { json } = await placeCall(harness.core.url, harness.tenants.campaign.id, key.keyValue);
      await limit({ addresses: ['192.0.2.0/24'] });
      const cancel = await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/${json['contactId']}`, {
        key: key.keyValue,
      });
      expect([cancel.status, readCode(cancel)]).to.deep.equal([401, 'unauthorized']);
      expect((await placeFrom(undefined, harness.core, { contact: {} })).status).to.equal(401);
    });

    it('are compared with X-Forwarded-For only if a trusted proxy sent it', async () => {
      await limit({ addresses: ['203.0.113.7'] });
      expect(await statusFrom('203.0.113.7', harness.core)).to.equal(401);
      expect(await statusFrom('203.0.113.7, 203.0.113.7', harness.core)).to.equal(401);
      expect(await statusFrom('203.0.113.7')).to.equal(202);
      // The client sent the first address, and the proxy added the second one.
      expect(await statusFrom('203.0.113.7, 198.51.100.9')).to.equal(401);
      expect(await statusFrom('198.51.100.9, 203.0.113.7')).to.equal(202);
      expect(await statusFrom('203.0.113.7, unknown')).to.equal(401);
      expect(await statusFrom(undefined)).to.equal(401);
      expect(await statusFrom('')).to.equal(401);
      for (const withPort of ['203.0.113.7:80', '[::ffff:203.0.113.7]:4711']) expect(await statusFrom(withPort)).to.equal(202);
    });

    it('refuse a client before its body is read, byte for byte as for an unknown key, even if the key was recently accepted', async () => {
      await limit({ addresses: ['203.0.113.7'] });
      expect(await statusFrom('203.0.113.7')).to.equal(202);
      // Announces a body, but never sends it.
      const answerTo = (keyValue: string) =>
        overSocket(
          behindProxy.url,
          `POST /api/v1/campaigns/${harness.tenants.campaign.id}/contacts/on-demand HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyValue}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n`,
        );
      const answer = await answerTo(key.keyValue);
      expect(answer).to.match(/^HTTP\/1\.1 401 /);
      expect(answer).to.equal(await answerTo(unknownKey));
    });

    it("don't count a refused request as a use of the key, but show it in the key's details and to its owner", async () => {
      await limit({ addresses: ['203.0.113.7'] });
      await placeFrom('203.0.113.7');
      clock.advance({ minutes: 2 });
      for (const address of ['198.51.100.1', '198.51.100.2', '198.51.100.2', '2001:db8::5'])
        expect(await statusFrom(address)).to.equal(401);
      // Refusals of a key that isn't active are neither counted nor shown.
      await harness.direct.storage.database
        .write('api_keys')
        .where({ id: key.id })
        .update({ expires_at: plus(clock.now(), -1) });
      expect(await statusFrom('198.51.100.9')).to.equal(401);
      await behindProxy.close();
      await startBehindProxy();
      const { apiKey, lastUsedAddress, usage, activity } = await details();
      expect([apiKey.lastUsedAt, lastUsedAddress]).to.deep.equal(['2026-11-21T09:00:00.000Z', '203.0.113.7']);
      expect(usage.at(-1)).to.deep.equal({ day: '2026-11-21', placed: 1, cancelled: 0, refused: 4 });
      const refused = activity.filter(({ action }) => action === 'api-key.refused');
      expect(refused.map(({ address, actor }) => [address, actor])).to.have.deep.members([
        ['198.51.100.1', null],
        ['198.51.100.2', null],
        ['2001:db8::5', null],
      ]);
      clock.set('2026-11-21T09:00:00.000Z');
    });

    it('leave an audit event about a refused address even if the key is revoked right after the refusal', async () => {
      await limit({ addresses: ['203.0.113.0/24'] });
      const countRefused = async () =>
        /^callkey_addresses_refused_total (\d+)$/m.exec((await ask('GET', `${behindProxy.managementUrl}/metrics`)).text)?.[1];
      const before = await countRefused();
      expect(await statusFrom('198.51.100.77')).to.equal(401);
      await until(async () => (await countRefused()) !== before);
      expect((await ask('DELETE', `${harness.core.url}/console/api-keys/${key.id}`, { cookie })).status).to.equal(204);
      await behindProxy.close();
      await startBehindProxy();
      const pat = await signIn(harness.core.url, 'pat@example.com');
      const { json } = await ask('GET', `${harness.core.url}/console/activity?action=api-key.refused`, { cookie: pat });
      const { events } = activitySchema.parse(json);
      expect(events.filter(({ subject }) => subject.id === key.id).map(({ address }) => address)).to.deep.equal(['198.51.100.77']);
    });

    it('cause only a limited number of audit events, however many other addresses are refused', async () => {
      await limit({ addresses: ['203.0.113.7'] });
      await Promise.all(Array.from({ length: 200 }, (_, n) => placeFrom(`198.51.100.${n}`)));
      await behindProxy.close();
      await startBehindProxy();
      const { usage, activity } = await details();
      expect(usage.at(-1)?.refused).to.equal(200);
      expect(activity.filter(({ action }) => action === 'api-key.refused')).to.have.length(20);
    });

    it("cause the audit events of all other refusals even if one can't be recorded", async () => {
      await limit({ addresses: ['203.0.113.7'] });
      await using direct = await openDirect(harness.database);
      const { write } = direct.storage.database;
      await write.raw(
        kind === 'sqlite'
          ? `CREATE TRIGGER refusing BEFORE INSERT ON audit_events WHEN NEW.address = '198.51.100.1' BEGIN SELECT RAISE(ABORT, 'refused'); END`
          : `ALTER TABLE audit_events ADD CONSTRAINT refusing CHECK (address <> '198.51.100.1') NOT VALID`,
      );
      for (const n of [1, 2, 3]) await placeFrom(`198.51.100.${n}`);
      await behindProxy.close();
      await write.raw(kind === 'sqlite' ? 'DROP TRIGGER refusing' : 'ALTER TABLE audit_events DROP CONSTRAINT refusing');
      await startBehindProxy();
      const refused = (await details()).activity.filter(({ action }) => action === 'api-key.refused');
      expect(refused.map(({ address }) => address)).to.have.members(['198.51.100.2', '198.51.100.3']);
    });

    it('leave an audit event with the new addresses, but only when they change', async () => {
      await limit({ addresses: ['10.0.0.0/8'], callsPerDay: 1 });
      await limit({ addresses: ['10.0.0.0/8'] });
      await limit({ addresses: ['::ffff:10.0.0.0/104'], callsPerDay: 1 });
      await limit({ addresses: null, callsPerDay: null });
      await limit({ callsPerDay: null });
      const { activity } = await details();
      expect(activity.filter(({ action }) => action === 'api-key.limited').map(({ detail, actor }) => [detail, actor?.name])).to.deep.equal(
        [
          ['no limits', 'Ada Account'],
          ['only from 10.0.0.0/8; at most 1 call per day', 'Ada Account'],
        ],
      );
    });

    it("aren't overwritten by a dialog with outdated limits", async () => {
      const opened = await details();
      await limit({ addresses: ['10.0.0.0/8'] });
      // Changing the other limit keeps the addresses.
      await limit({ callsPerDay: 5 });
      expect((await details()).apiKey.addresses).to.deep.equal(['10.0.0.0/8']);
      const stale = await limit({ addresses: null, limitsVersion: opened.apiKey.limitsVersion });
      expect([stale.status, readCode(stale)]).to.deep.equal([409, 'conflict']);
      // The response to the first of two equal changes may have been lost.
      expect((await limit({ callsPerDay: 5, limitsVersion: opened.apiKey.limitsVersion })).status).to.equal(200);
      const { limitsVersion } = (await details()).apiKey;
      // A user's own changes wait for each other.
      const pat = await signIn(harness.core.url, 'pat@example.com');
      const concurrent = await Promise.all([cookie, pat].map((as, n) => limit({ callsPerDay: n + 1, limitsVersion }, as)));
      expect(concurrent.map(({ status }) => status).sort()).to.deep.equal([200, 409]);
    });
  });
});
