import { expect } from 'chai';
import { plus } from '../../core/domain/instant.ts';
import type { Credentials, Session } from '../../core/domain/model.ts';
import type { SessionBounds, SessionStore } from '../../core/domain/ports.ts';
import { authenticate, resumeSession, sweepSessions } from '../../core/domain/sign-in/sessions.ts';
import { credentialsOf, fakePorts, readProblem, sessionOf, viewers } from '../support/ports.ts';

const { account, partner } = viewers;
const { tenancy: _, ...user } = account;
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const refused = 'unauthorized: This request needs valid credentials.';

/** Creates one session, started and last seen this many ms ago. */
function createSession({ started = hour, seen = 0, isKnown = true } = {}) {
  const touched: number[] = [];
  const swept: SessionBounds[] = [];
  const allowed: object[] = [];
  const now = fakePorts().clock.now();
  const session = sessionOf(user, { startedAt: plus(now, -started), lastSeenAt: plus(now, -seen) });
  const sessions: Partial<SessionStore> = {
    find: async () => (isKnown ? session : null),
    touch: async (_id, at) => void touched.push(at),
    sweep: async (bounds) => void swept.push(bounds),
    endDisallowed: async (ways) => void allowed.push(ways),
  };
  return { ports: fakePorts({ stores: { sessions } }), session, touched, swept, allowed, now };
}

describe('a session', () => {
  for (const [what, ages, isOpen] of [
    ['that started seven days ago', { started: 7 * day }, true],
    ['that started seven days and a millisecond ago', { started: 7 * day + 1 }, false],
    ['last seen a day ago', { started: 2 * day, seen: day }, true],
    ['last seen a day and a millisecond ago', { started: 2 * day, seen: day + 1 }, false],
    ['that started five minutes in the future', { started: -5 * minute }, true],
    ['that started more than five minutes in the future, because the clock was set back,', { started: -5 * minute - 1 }, false],
    ['last seen five minutes in the future', { seen: -5 * minute }, true],
    ['last seen more than five minutes in the future', { seen: -5 * minute - 1 }, false],
  ] as const) {
    it(`${what} is ${isOpen ? 'open' : 'expired'}`, async () => {
      const { ports, session } = createSession(ages);
      expect(await resumeSession(ports, 'id')).to.equal(isOpen ? session : null);
    });
  }

  it("isn't found with an unknown token", async () => {
    expect(await resumeSession(createSession({ isKnown: false }).ports, 'id')).to.equal(null);
  });

  it('updates its last-seen time once per minute, whether the clock moved forward or back', async () => {
    const touched = async (seen: number) => {
      const { ports, touched, now } = createSession({ seen });
      await resumeSession(ports, 'id');
      return touched.map((at) => at - now);
    };
    expect([await touched(minute), await touched(minute + 1), await touched(-minute - 1)]).to.deep.equal([[], [0], [0]]);
  });

  it('is deleted by the sweep under the same conditions under which it would be refused', async () => {
    const { ports, swept, allowed, now } = createSession();
    await sweepSessions(ports);
    const ages = swept.map(({ startedAfter, seenAfter, before }) => [startedAfter, seenAfter, before].map((at) => now - at));
    expect([ages, allowed]).to.deep.equal([[[7 * day, day, -5 * minute]], [{ password: true, issuer: null }]]);
  });
});

describe('signing in', () => {
  /**
   * Tries to sign in. @returns the result, how many counters were checked for the attempt, and how many times counters were reset or
   * reduced
   */
  const attempt = async ({
    right = true,
    expiresIn = null as number | null,
    current = null as Session | null,
    isDisabled = false,
  } = {}) => {
    let counters = 0;
    let cleared = 0;
    const ports = fakePorts({
      stores: {
        users: {
          findByEmail: async () =>
            credentialsOf(user, {
              passwordExpiresAt: expiresIn === null ? null : plus(fakePorts().clock.now(), expiresIn),
              disabledAt: isDisabled ? fakePorts().clock.now() : null,
            }),
        },
      },
      throttle: {
        blockedUntil: async (asked) => {
          counters = Math.max(counters, asked.length);
          return null;
        },
        take: async () => true,
        reset: async () => {
          cleared++;
          return false;
        },
        giveBack: async () => void cleared++,
      },
      passwords: { verify: async (find: () => Promise<Credentials | null>) => (right ? find() : null) },
    });
    const vouchers = { session: current && { id: 'id', data: current }, device: undefined };
    const result = await readProblem(authenticate(ports, { email: user.email, password: 'p', address: '192.0.2.1', vouchers }));
    return { result, counters, cleared };
  };

  it('accepts only the correct password', async () => {
    expect([(await attempt()).result, (await attempt({ right: false })).result]).to.deep.equal(['no problem: undefined', refused]);
  });

  it('refuses a disabled user with the correct password', async () => {
    expect((await attempt({ isDisabled: true })).result).to.equal(refused);
  });

  it('accepts a one-time password until it expires', async () => {
    const results = await Promise.all([1, 0, -1].map((expiresIn) => attempt({ expiresIn })));
    expect(results.map(({ result }) => result)).to.deep.equal(['no problem: undefined', 'no problem: undefined', refused]);
  });

  it('from an open session of the same user counts only against that session', async () => {
    const { session } = createSession();
    const other = { ...session, user: partner };
    const counters = [await attempt(), await attempt({ current: session }), await attempt({ current: other })].map((one) => one.counters);
    expect(counters).to.deep.equal([5, 1, 5]);
  });

  it('resets counters only if the sign-in succeeds', async () => {
    const cleared = async (options: Parameters<typeof attempt>[0]) => (await attempt(options)).cleared;
    expect(await cleared({})).to.equal(5);
    expect([await cleared({ isDisabled: true }), await cleared({ expiresIn: -1 }), await cleared({ right: false })]).to.deep.equal([
      0, 0, 0,
    ]);
  });
});
