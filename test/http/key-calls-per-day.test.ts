import { expect } from 'chai';
import { apiKeyDetailsSchema } from '#contract/console/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeUser } from '../../core/domain/directory/users.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCode, textAt, untilServed } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { placeCall, signIn, somePhone } from '../support/tenants.ts';

describe("an API key's calls per day", () => {
  onEachDatabase((kind) => {
    const clock = fakeClock('2026-11-21T09:00:00.000Z');
    const harness = openOnce(() => openCore({ kind, clock }));
    let other: RunningCore;

    before(async () => {
      other = await startCoreHere(harness.database, { clock });
    });
    beforeEach(() => clock.set('2026-11-21T09:00:00.000Z'));
    after(() => other.close());

    async function limitedKey(callsPerDay: number | null, timeZone = 'UTC') {
      const { url } = harness.core;
      const cookie = await signIn(url, 'ada@example.com');
      const created = await ask('POST', `${url}/console/api-keys`, { cookie, body: { name: 'K', expiration: { kind: 'none' }, timeZone } });
      const key = { id: textAt(created, 'apiKey', 'id'), keyValue: textAt(created, 'keyValue') };
      const limit = async (most: number | null) => {
        const session = await signIn(url, 'ada@example.com');
        const { status } = await ask('PATCH', `${url}/console/api-keys/${key.id}`, { cookie: session, body: { callsPerDay: most } });
        expect(status).to.equal(200);
      };
      if (callsPerDay !== null) await limit(callsPerDay);
      const place = (core: RunningCore = harness.core, more: object = {}) =>
        placeCall(core.url, harness.tenants.campaign.id, key.keyValue, { contact: { phone: somePhone() }, ...more });
      const today = async () => {
        const session = await signIn(url, 'ada@example.com');
        const { json } = await ask('GET', `${url}/console/api-keys/${key.id}?timeZone=UTC`, { cookie: session });
        return apiKeyDetailsSchema.parse(json).today;
      };
      return { ...key, limit, place, today };
    }
    /** Sends a hundred requests at the same time, half of them to each core. */
    const placeHundred = (send: (core: RunningCore) => Promise<Answer>) =>
      Promise.all(Array.from({ length: 100 }, (_, n) => untilServed(() => send(n % 2 === 0 ? harness.core : other))));
    const countAnswers = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status).length;
    const quota = ({ headers }: Answer) => [headers['ratelimit-policy'], headers['ratelimit']];

    it('are in the headers as soon as they are limited, even in the response to a repeated request', async () => {
      const { place, limit } = await limitedKey(null);
      const call = { requestId: 'before-the-limit', contact: { phone: '+493012345678' } };
      expect(quota(await place(harness.core, call))).to.deep.equal([undefined, undefined]);
      await limit(3);
      expect(quota(await place(harness.core, call))).to.deep.equal(['"day";q=3;w=86400', '"day";r=3;t=54000']);
    });

    it('are limited with a 429 until the next midnight, and each response says how many are left', async () => {
      const { place } = await limitedKey(2);
      expect(quota(await place())).to.deep.equal(['"day";q=2;w=86400', '"day";r=1;t=54000']);
      clock.advance({ hours: 1 });
      expect(quota(await place())).to.deep.equal(['"day";q=2;w=86400', '"day";r=0;t=50400']);
      const refused = await place();
      expect([refused.status, readCode(refused), refused.headers['retry-after']]).to.deep.equal([429, 'too-many-calls', '50400']);
      expect(quota(refused)).to.deep.equal(['"day";q=2;w=86400', '"day";r=0;t=50400']);
      expect(textAt(refused, 'detail')).to.equal(
        'This key has reached its limit of 2 calls per day. It can place calls again after the next midnight in its time zone.',
      );
      clock.set('2026-11-21T23:59:59.999Z');
      expect((await place()).headers['retry-after']).to.equal('1');
      clock.advance({ milliseconds: 1 });
      expect((await place()).status).to.equal(202);
    });

    it('are counted exactly with a hundred concurrent requests to two cores', async () => {
      for (const most of [1, 37]) {
        const { place, today } = await limitedKey(most);
        const answers = await placeHundred(place);
        expect([countAnswers(answers, 202), countAnswers(answers, 429)]).to.deep.equal([most, 100 - most]);
        expect(await today()).to.include({ placed: most });
      }
    });

    it('count one call for a hundred concurrent requests with the same request ID to two cores', async () => {
      const { place, today } = await limitedKey(2);
      const body = { requestId: 'same', contact: { phone: '+493012345678' } };
      const answers = await placeHundred((core) => place(core, body));
      expect(countAnswers(answers, 202)).to.equal(100);
      expect(await today()).to.include({ placed: 1 });
      expect((await place()).status).to.equal(202);
    });

    for (const [timeZone, before, midnight] of [
      ['Pacific/Kiritimati', '2026-11-21T09:59:59.999Z', '2026-11-21T10:00:00.000Z'],
      ['Pacific/Pago_Pago', '2026-11-21T10:59:59.999Z', '2026-11-21T11:00:00.000Z'],
    ] as const) {
      it(`start again at midnight in ${timeZone}, on every core`, async () => {
        const { place, today } = await limitedKey(1, timeZone);
        clock.set(before);
        expect((await place()).status).to.equal(202);
        for (const core of [harness.core, other]) expect((await place(core)).status).to.equal(429);
        expect(await today()).to.include({ timeZone, placed: 1, resetsAt: midnight });
        clock.set(midnight);
        expect(await today()).to.include({ placed: 0 });
        expect((await place(other)).status).to.equal(202);
        for (const core of [harness.core, other]) expect((await place(core)).status).to.equal(429);
      });
    }

    it('can be raised, lowered and removed, with effect from the next request on every core', async () => {
      const { limit, place } = await limitedKey(1);
      expect((await place()).status).to.equal(202);
      for (const core of [harness.core, other]) expect((await place(core)).status).to.equal(429);
      await limit(3);
      for (const core of [harness.core, other]) expect((await place(core)).status).to.equal(202);
      await limit(2);
      for (const core of [harness.core, other]) expect((await place(core)).status).to.equal(429);
      await limit(null);
      for (const core of [harness.core, other]) expect(quota(await place(core))).to.deep.equal([undefined, undefined]);
    });

    it('count from when the limit is set, which the first day says, and repeating the same limit changes nothing', async () => {
      const { place, limit, today } = await limitedKey(null);
      await place();
      clock.advance({ hours: 1 });
      await limit(2);
      const countedFrom = '2026-11-21T10:00:00.000Z';
      expect(await today()).to.include({ placed: 0, countedFrom });
      await place();
      clock.advance({ hours: 1 });
      await limit(2);
      await limit(3);
      expect(await today()).to.include({ placed: 1, countedFrom });
      for (const status of [202, 202, 429]) expect((await place(other)).status).to.equal(status);
      await limit(null);
      await limit(1);
      expect(await today()).to.include({ placed: 0, countedFrom: '2026-11-21T11:00:00.000Z' });
      clock.set('2026-11-22T09:00:00.000Z');
      expect(await today())
        .to.include({ placed: 0 })
        .and.not.to.have.property('countedFrom');
    });

    it('say when the limit was set even if the owner has moved to another partner and back since', async () => {
      const { limit, today } = await limitedKey(3);
      const { tenants, direct } = harness;
      const move = (accountId: string) =>
        changeUser(direct.ports, operator, tenants.users.account, { userType: 'account', accountId, partnerId: null });
      await move(tenants.otherAccount.id);
      expect(await today()).to.include({ countedFrom: '2026-11-21T09:00:00.000Z' });
      clock.advance({ hours: 1 });
      await limit(null);
      clock.advance({ hours: 1 });
      await limit(2);
      expect(await today()).to.include({ countedFrom: '2026-11-21T11:00:00.000Z' });
      await move(tenants.account.id);
      expect(await today()).to.include({ countedFrom: '2026-11-21T11:00:00.000Z' });
    });

    it("follow the key's time zone, even after a repeated call to a contact in a different zone", async () => {
      const { limit, place } = await limitedKey(null);
      const body = { requestId: 'elsewhere', contact: { phone: '+493012345678', timeZone: 'America/Phoenix' } };
      expect((await place(harness.core, body)).status).to.equal(202);
      await limit(1);
      expect((await place(harness.core, body)).headers['idempotent-replayed']).to.equal('true');
      clock.set('2026-11-22T00:00:00.000Z');
      expect((await place()).status).to.equal(202);
    });

    it("don't affect other keys", async () => {
      const free = await limitedKey(null);
      const { place } = await limitedKey(1);
      const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? place() : free.place())));
      expect({ placed: countAnswers(answers, 202), refused: countAnswers(answers, 429) }).to.deep.equal({ placed: 16, refused: 14 });
    });
  });
});
