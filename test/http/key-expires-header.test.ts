import { expect } from 'chai';
import { apiKeysSchema } from '#contract/console/api-keys.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { type Answer, ask, textAt } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, placeCall, signIn } from '../support/tenants.ts';

describe('the header Callkey-Key-Expires', () => {
  const clock = fakeClock('2026-11-21T09:00:00.000Z');
  let cookie: string;
  let key: string;
  let end: string | null | undefined;

  const harness = openOnce(() => openCore({ clock }));
  before(async () => {
    cookie = await signIn(harness.core.url, 'ada@example.com');
    key = (await createKey(harness.core.url, cookie, 'Ending', { kind: 'custom', date: '2026-12-20' })).keyValue;
    end = apiKeysSchema.parse((await ask('GET', `${harness.core.url}/console/api-keys`, { cookie })).json).apiKeys[0]?.expiresAt;
  });

  const getHeader = (answer: Answer) => [answer.status, answer.headers['callkey-key-expires']];
  const place = (by: string, body?: object) => placeCall(harness.core.url, harness.tenants.campaign.id, by, body);

  it('is in every response to a request with an accepted key, if the key expires within 30 days', async () => {
    const placed = await place(key);
    const answers: [Answer, number][] = [
      [placed, 202],
      [await place(key), 202],
      [await place(key, {}), 422],
      [await placeCall(harness.core.url, harness.tenants.otherCampaign.id, key), 403],
      [await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/${textAt(placed, 'contactId')}`, { key }), 200],
      [await ask('DELETE', `${onDemand(harness.core.url, harness.tenants.campaign.id)}/none`, { key }), 404],
    ];
    for (const [answer, status] of answers) expect(getHeader(answer)).to.deep.equal([status, end]);
  });

  it('appears when a key in use has 30 days left', async () => {
    const { keyValue } = await createKey(harness.core.url, cookie, 'Longer', { kind: 'custom', date: '2026-12-21' });
    expect(getHeader(await place(keyValue))).to.deep.equal([202, undefined]);
    clock.set('2026-11-21T22:59:59.998Z');
    expect(getHeader(await place(keyValue))).to.deep.equal([202, undefined]);
    clock.set('2026-11-21T22:59:59.999Z');
    expect(getHeader(await place(keyValue))).to.deep.equal([202, '2026-12-21T22:59:59.999Z']);
    clock.set('2026-11-21T09:00:00.000Z');
  });

  it('is absent when a key that was in use is refused', async () => {
    const { id, keyValue } = await createKey(harness.core.url, cookie, 'Revoked', { kind: 'custom', date: '2026-11-30' });
    await place(keyValue);
    await ask('DELETE', `${harness.core.url}/console/api-keys/${id}`, { cookie });
    expect(getHeader(await place(keyValue))).to.deep.equal([401, undefined]);
  });
});
