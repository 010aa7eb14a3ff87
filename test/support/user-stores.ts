import type { UserVisibility } from '../../core/domain/directory/scope.ts';
import type { AuditEvent, Credentials, ListedUser, NewPassword, NewUser, TargetUser, Viewer } from '../../core/domain/model.ts';
import type { UserStore } from '../../core/domain/ports.ts';
import { fakePorts, tenancies, viewers } from './ports.ts';

const { account } = viewers;

/** Creates a fake store with these users, which records its calls. */
export function createUsers({ isThere = true, right = true, found = [account] as Viewer[] } = {}) {
  const created: NewUser[] = [];
  const events: AuditEvent[] = [];
  const asked: UserVisibility[] = [];
  const passwords: [TargetUser, NewPassword][] = [];
  const deleted: [string, boolean | 'later'][] = [];
  const listed = (user: Viewer): ListedUser => ({
    ...{ ...user, createdAt: ports.clock.now() },
    ...{ lastSignInAt: null, disabledAt: null, apiKeys: 0, link: null, hasSecondFactor: false, partnerName: null, signInVersion: 'v1' },
  });
  const users: Partial<UserStore> = {
    create: async (user, event) => {
      created.push(user);
      events.push(event);
    },
    list: async (visibility) => {
      asked.push(visibility);
      return found.map(listed);
    },
    find: async (visibility) => {
      asked.push(visibility);
      return found.map(listed)[0] ?? null;
    },
    deletionImpact: async () => ({ apiKeys: [], sessions: 3 }),
    delete: async ({ id }, { cancelQueuedCalls }, event) => {
      deleted.push([id, cancelQueuedCalls]);
      events.push(event);
      return isThere ? { apiKeys: 1, sessions: 2 } : null;
    },
    setPassword: async ({ id, signInVersion = 'any' }, password, event) => {
      passwords.push([{ id, signInVersion }, password]);
      events.push(event);
      return isThere;
    },
    findByEmail: async () => ({
      ...{ user: account, passwordHash: 'old hash', passwordExpiresAt: null, disabledAt: null, hasSecondFactor: false },
      signInVersion: 'v1',
    }),
  };
  const throttleKeys: string[] = [];
  const ports = fakePorts({
    stores: { users, tenancies, secondFactors: { find: async () => null } },
    throttle: {
      blockedUntil: async (counters) => {
        throttleKeys.push(...counters.map(({ key }) => key));
        return null;
      },
      take: async () => true,
      reset: async () => undefined,
      giveBack: async () => undefined,
    },
    passwords: { verify: async (find: () => Promise<Credentials | null>) => (right ? find() : null) },
  });
  return { ports, created, events, asked, passwords, deleted, throttleKeys };
}
