import { expect } from 'chai';
import { oneDay } from '../../core/domain/instant.ts';
import type { Session } from '../../core/domain/model.ts';
import { deviceLife, findDeviceUser, findVoucher, makeDeviceToken } from '../../core/domain/sign-in/devices.ts';
import { at } from '../support/clock.ts';
import { credentialsOf, fakePorts, sessionOf, viewers } from '../support/ports.ts';

const user = viewers.account;
const now = at('2026-11-21T09:00:00.000Z');
/** Returns ports with one user, whose way of signing in has this version. */
const portsWith = (signInVersion = 'v1') =>
  fakePorts({
    stores: {
      users: {
        findByEmail: async (email) => (email === user.email ? credentialsOf(user, { signInVersion }) : null),
      },
    },
  });

describe('a sign-in', () => {
  const vouch = (device: string | undefined, { email = user.email, ports = portsWith(), from = null as Session | null } = {}) =>
    findVoucher(ports, email, { session: from && { id: 'digest', data: from }, device });
  const token = makeDeviceToken(portsWith(), { user, signInVersion: 'v1' });

  it('is trusted if its user has signed in on the same device within the last 90 days', async () => {
    expect(await vouch(token)).to.equal(`device ${token}`);
    expect(deviceLife.as('days')).to.equal(90);
    const [id, expiresAt, print] = token.split('.');
    expect([id?.length, expiresAt, print?.length]).to.deep.equal([22, String(now + 90 * oneDay), 43]);
  });

  for (const [what, device, options] of [
    ['whose cookie has expired', makeDeviceToken(portsWith(), { user, signInVersion: 'v1' }).replace(/\.\d+\./, `.${now - 1}.`), {}],
    ['with a cookie from before a change of how the user signs in', token, { ports: portsWith('v2') }],
    ['with a cookie for a different email address', token, { email: 'nobody@example.com' }],
    ['with a cookie, for an impossible email address', token, { email: 'a\0@example.com' }],
    ['with a malformed cookie', 'nonsense', {}],
    ['without a cookie', undefined, {}],
  ] as const) {
    it(`isn't trusted from a device ${what}`, async () => {
      expect(await vouch(device, options)).to.equal(null);
    });
  }

  it("is trusted from a device up to its cookie's last millisecond", async () => {
    const last = token.replace(/\.\d+\./, `.${now}.`);
    expect(await vouch(last)).to.equal(`device ${last}`);
  });

  it('with the provider is trusted only from a device whose cookie names its user', async () => {
    const listed = { ...user, partnerName: null, createdAt: now, lastSignInAt: now, disabledAt: null, apiKeys: 0, link: null };
    const ports = portsWith();
    ports.stores.users.find = async (_, id) => (id === user.id ? { ...listed, hasSecondFactor: false, signInVersion: 'v1' } : null);
    expect(await findDeviceUser(ports, token)).to.equal(user.id);
    const earlier = token.split('.').slice(0, 3).join('.');
    for (const device of [earlier, `${earlier}.another`, 'nonsense', undefined]) expect(await findDeviceUser(ports, device)).to.equal(null);
  });

  it('is trusted from an open session of the same user', async () => {
    expect(await vouch(undefined, { from: sessionOf(user) })).to.equal('session digest');
    expect(await vouch(token, { from: sessionOf(user) })).to.equal(`device ${token}`);
    expect(await vouch(undefined, { from: sessionOf(viewers.partner) })).to.equal(null);
  });
});
