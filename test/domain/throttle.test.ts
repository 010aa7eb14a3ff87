import { expect } from 'chai';
import { plus } from '../../core/domain/instant.ts';
import type { Credentials } from '../../core/domain/model.ts';
import type { Attempt, ThrottleCounter, ThrottleStore } from '../../core/domain/ports.ts';
import { checkPassword, countIdentityProviderSignIn, maxWindow } from '../../core/domain/sign-in/throttle.ts';
import { credentialsOf, fakePorts, viewers } from '../support/ports.ts';

const user = viewers.staff;
const credentials = credentialsOf(user);
const minute = 60_000;
const toKind = (key: string) => key.replace(/:.*/, '');

/** Checks a password and records what happens to the counters. For a full counter, `full` is the ms until it resets. */
async function check({
  email = user.email,
  address = '192.0.2.1',
  vouched = null as string | null,
  right = false,
  mayEnter = true,
  fullFor = [] as (number | null)[],
  taken = true,
} = {}) {
  const counters: ThrottleCounter[] = [];
  const done: string[] = [];
  const lookedUp: string[] = [];
  const answers = [...fullFor];
  const throttle: ThrottleStore = {
    blockedUntil: async (_, now) => {
      const wait = answers.shift() ?? null;
      return wait === null ? null : plus(now, wait);
    },
    take: async (asked) => {
      const limits = asked.filter(({ key }) => toKind(key) !== 'counted');
      counters.push(...limits);
      return limits.length === 0 || taken;
    },
    giveBack: async (key) => void done.push(`back ${toKind(key)}`),
    reset: async (key) => done.push(`reset ${toKind(key)}`) > 0,
    sweep: () => Promise.reject(new Error('These tests never sweep.')),
  };
  const findByEmail = async (asked: string) => {
    lookedUp.push(asked);
    return credentials;
  };
  const origins: unknown[] = [];
  const verify = async (find: () => Promise<Credentials | null>, _password: string, origin: Attempt) => {
    origins.push(origin);
    const user = await find();
    return right ? user : null;
  };
  const ports = fakePorts({ throttle, stores: { users: { findByEmail } }, passwords: { verify } });
  const result = await checkPassword(ports, { email, address, vouched }, email, 'a password', () => mayEnter).catch((error) => error);
  return { result, counters, done, lookedUp, origins };
}
const listKeys = async (attempt: Parameters<typeof check>[0]) => (await check(attempt)).counters.map(({ key }) => key);

describe('the password throttle', () => {
  it('counts an attempt per address, per account and per combination of the two, each with its own limit', async () => {
    const { counters } = await check();
    expect(counters.map(({ key, max, window }) => [toKind(key), max, window])).to.deep.equal([
      ['address', 100, 15 * minute],
      ['network24', 1_000, 15 * minute],
      ['account', 20, 60 * minute],
      ['pair', 10, 15 * minute],
      ['pairs24', 100, 60 * minute],
    ]);
    expect(maxWindow).to.equal(24 * 60 * minute);
  });

  it('counts an IPv6 attempt for its /64, /56 and /48', async () => {
    const { counters } = await check({ address: '2001:db8:1:203::1' });
    expect(counters.map(({ key, max }) => [toKind(key), max])).to.deep.equal([
      ['address', 100],
      ['network56', 300],
      ['network48', 1_000],
      ['account', 20],
      ['pair', 10],
      ['pairs56', 100],
      ['pairs48', 100],
    ]);
    const shared = async (address: string) => {
      const keys = await listKeys({ address });
      return counters.map(({ key }, index) => key === keys[index]);
    };
    expect(await shared('2001:db8:1:2ff::1')).to.deep.equal([false, true, true, true, false, true, true]);
    expect(await shared('2001:db8:1:300::1')).to.deep.equal([false, false, true, true, false, false, true]);
    expect(await shared('2001:db8:2:203::1')).to.deep.equal([false, false, false, true, false, false, false]);
  });

  it('counts a sign-in with the provider for the same networks, separately from passwords, until it succeeds', async () => {
    for (const [address, ...networks] of [
      ['192.0.2.1', 'network24'],
      ['2001:db8:1:203::1', 'network56', 'network48'],
    ] as const) {
      const counted: ThrottleCounter[] = [];
      const uncounted: string[] = [];
      const throttle: Partial<ThrottleStore> = {
        blockedUntil: async () => null,
        take: async (asked) => counted.push(...asked) > 0,
        giveBack: async (key) => void uncounted.push(key),
      };
      const uncount = await countIdentityProviderSignIn(fakePorts({ throttle }), { address, state: 'a state', deviceUser: null });
      expect(toKind(counted.shift()?.key ?? '')).to.equal('flow');
      const maxima = { provider: 100, network24: 1_000, network56: 300, network48: 1_000 };
      const kinds = ['provider', ...networks] as const;
      expect(counted.map(({ key, max }) => [toKind(key), max])).to.deep.equal(kinds.map((kind) => [kind, maxima[kind]]));
      const keys = counted.map(({ key }) => key);
      expect(keys).not.to.include.oneOf(await listKeys({ address }));
      await uncount();
      expect(uncounted).to.deep.equal(keys);
    }
  });

  it('counts an attempt from a known device or session only for that device or session', async () => {
    const { counters } = await check({ vouched: 'device 1' });
    expect(counters.map(({ key, max, window }) => [toKind(key), max, window])).to.deep.equal([['device', 10, 15 * minute]]);
    expect(await listKeys({ vouched: 'device 2' })).not.to.deep.equal([counters[0]?.key]);
    const { done, origins } = await check({ vouched: 'device 1', right: true });
    expect([done, origins]).to.deep.equal([['reset device'], [{ email: user.email, address: '192.0.2.1', vouched: 'device 1' }]]);
  });

  it('counts each address and each account separately', async () => {
    const [one, elsewhere, other] = [
      await listKeys({}),
      await listKeys({ address: '192.0.2.2' }),
      await listKeys({ email: 'eve@example.com' }),
    ];
    const same = (keys: readonly string[]) => one.map((key, index) => key === keys[index]);
    expect(same(elsewhere)).to.deep.equal([false, true, true, false, true]);
    expect(same(other)).to.deep.equal([true, true, false, false, false]);
  });

  it("doesn't store IP addresses or email addresses in a counter", async () => {
    for (const key of await listKeys({})) expect(key).to.match(/^(address|network24|account|pair|pairs24):[A-Za-z0-9_-]{43}$/);
  });

  it('after a correct password, resets the counter of that account and address, and takes the attempt back from the other counters', async () => {
    const { result, done } = await check({ right: true });
    expect([result, done]).to.deep.equal([
      credentials,
      ['reset counted', 'back account', 'back address', 'back network24', 'reset pair', 'reset pairs24'],
    ]);
  });

  it("leaves the counters unchanged after a wrong password, or if the user isn't allowed in", async () => {
    for (const attempt of [{}, { right: true, mayEnter: false }]) {
      const { result, done } = await check(attempt);
      expect([result, done]).to.deep.equal([null, []]);
    }
  });

  for (const [milliseconds, seconds, wait] of [
    [1_000, 1, '1 second'],
    [1_001, 2, '2 seconds'],
    [-5_000, 1, '1 second'],
    [59_000, 59, '59 seconds'],
    [59_001, 60, '1 minute'],
    [120 * minute, 7_200, '120 minutes'],
    [120 * minute + 1, 7_201, '3 hours'],
  ] as const) {
    it(`refuses for ${seconds} s if a counter resets in ${milliseconds} ms, and doesn't count the attempt`, async () => {
      const { result, counters, lookedUp } = await check({ right: true, fullFor: [milliseconds] });
      expect(result).to.include({
        code: 'too-many-requests',
        retryAfter: seconds,
        message: `Too many attempts. Try again in ${wait}.`,
      });
      expect([counters, lookedUp]).to.deep.equal([[], []]);
    });
  }

  it('refuses an attempt if a counter filled up while the attempt was waiting', async () => {
    const { result, lookedUp } = await check({ right: true, taken: false, fullFor: [null, 3_000] });
    expect(result).to.include({ code: 'too-many-requests', retryAfter: 3 });
    expect(lookedUp).to.deep.equal([]);
    expect((await check({ taken: false })).result).to.include({ code: 'too-many-requests', retryAfter: 1 });
  });

  it("doesn't query the database for an email address that can't exist", async () => {
    const { result, lookedUp } = await check({ email: 'a\0@example.com', right: true });
    expect([result, lookedUp]).to.deep.equal([null, []]);
    expect((await check()).lookedUp).to.deep.equal([user.email]);
  });
});
