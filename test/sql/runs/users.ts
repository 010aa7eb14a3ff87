import { testRandomness } from '../../support/clock.ts';
import { digest, each, type Fixtures, later, nothing, now, type Runs } from '../fixtures.ts';

export function createUsersRuns({
  stores,
  partner,
  account,
  user,
  event,
  createKeys,
  toIdentity,
  toCode,
  createUser,
  createdUser,
  session,
  secondFactor,
  step,
  recovery,
  revokeOptions,
  counter,
  storage,
}: Fixtures): Pick<Runs, 'users' | 'sessions' | 'links' | 'secondFactors' | 'throttle'> {
  return {
    users: {
      count: (count) => count(),
      async list(list) {
        const accountUsers = { kind: 'account', accountId: account.id, partnerId: partner.id } as const;
        const visibilities = [
          accountUsers,
          { kind: 'partner', partnerId: partner.id },
          { kind: 'staff' },
          { kind: 'all' },
          nothing,
        ] as const;
        await each(visibilities, (visibility) => list(visibility, { search: '', awaySince: null }, null, 100));
        await list({ kind: 'all' }, { search: 'Ada', awaySince: now }, { at: now, id: user.id }, 100);
      },
      find: (find) => find({ kind: 'all' }, user.id),
      async deletionImpact(deletionImpact) {
        await deletionImpact(user.id, null, 1);
        await deletionImpact(user.id, { at: later, id: user.id }, 1);
      },
      findByEmail: (findByEmail) => findByEmail(user.email),
      create: (create) => create(createUser(), event()),
      async setPassword(setPassword) {
        const { id, password } = await createdUser();
        await setPassword({ id }, password, event('password.reset', id));
        await setPassword(user, password, { ...event('password.changed', user.id), session: await session() });
        await setPassword({ id, signInVersion: '' }, password, event('password.reset', id));
      },
      async change(change) {
        const [one, other] = [await createdUser(), await createdUser()];
        await change(one.id, one, createUser(), event());
        await change(other.id, other, { ...createUser(), userType: 'staff', accountId: null, partnerId: null }, event());
      },
      async setDisabled(setDisabled) {
        const { id } = await createdUser();
        await setDisabled({ id }, now, event('user.disabled', id));
        await setDisabled({ id }, null, event('user.enabled', id));
      },
      async delete(deleteUser) {
        const deleted = await createdUser();
        await createKeys(deleted, 1_000);
        await deleteUser(deleted, revokeOptions, event());
        await deleteUser(await createdUser(), { ...revokeOptions, cancelQueuedCalls: false }, event());
      },
      async finishDeletions(finishDeletions) {
        const { id } = await createdUser();
        await storage.database.write('users').where({ id }).update({ deleted_at: now });
        await finishDeletions(AbortSignal.timeout(60_000));
      },
      async finishMoves(finishMoves) {
        const moved = await createdUser();
        await createKeys(moved, 250);
        const { write } = storage.database;
        await write('users').where({ id: moved.id }).update({ moving_keys: testRandomness.id() });
        await write('api_keys').where({ creator_id: moved.id }).update({ creator_partner_id: null });
        await finishMoves(AbortSignal.timeout(60_000));
      },
    },
    sessions: {
      async start(start) {
        const { signInVersion } = (await stores.users.findByEmail(user.email)) ?? { signInVersion: '' };
        await start({ id: digest(), userId: user.id, at: now, halfOpenUntil: null }, signInVersion, event());
        await start({ id: digest(), userId: user.id, at: now, halfOpenUntil: later }, signInVersion, null);
      },
      async finish(finish) {
        await secondFactor();
        const started = { id: digest(), userId: user.id, at: now, halfOpenUntil: null } as const;
        await finish(await session(user.id, later), started, step, [event()]);
      },
      find: (find) => find(digest()),
      touch: (touch) => touch(digest(), now),
      selectTenancy: async (selectTenancy) => selectTenancy(await session(), null),
      end: async (end) => end(await session(), event()),
      endAll: (endAll) => endAll(event('session.revoked', user.id)),
      async startLinked(startLinked) {
        const linked = await createdUser();
        await stores.links.create(linked, toIdentity(linked.id), false, event());
        const started = { id: digest(), userId: linked.id, at: now, halfOpenUntil: null };
        await startLinked(started, '', toIdentity(linked.id), event());
      },
      async sweep(sweep) {
        const bounds = { startedAfter: now, seenAfter: now, before: now, now };
        await sweep(bounds);
      },
      async endDisallowed(endDisallowed) {
        await endDisallowed({ password: true, issuer: null });
        await endDisallowed({ password: false, issuer: 'https://login.example.com' });
      },
    },
    links: {
      find: (find) => find(toIdentity(user.id)),
      async create(create) {
        const linked = await createdUser();
        await create(linked, toIdentity(linked.id), false, event('user.linked', linked.id));
      },
      async delete(remove) {
        const linked = await createdUser();
        await stores.links.create(linked, toIdentity(linked.id), false, event());
        await remove(linked, event('user.unlinked', linked.id));
      },
      list: (list) => list(),
      createCode: (createCode) => createCode(toCode(digest())),
      async takeCode(takeCode) {
        const code = toCode(digest());
        await stores.links.createCode(code);
        await takeCode(code.digest);
      },
      sweepCodes: (sweepCodes) => sweepCodes(now),
    },
    secondFactors: {
      find: (find) => find(user.id),
      async enroll(enroll) {
        await stores.secondFactors.reset(user, event());
        await each(['a secret', 'another secret'], (secret) => enroll(user, secret));
      },
      async confirm(confirm) {
        await stores.secondFactors.reset(user, event());
        await stores.secondFactors.enroll(user, 'a secret');
        await confirm(user.id, { secret: 'a secret', step: 1, recoveryDigests: ['a', 'b'], at: now }, event());
      },
      async use(use) {
        await secondFactor();
        await each([step, recovery], (code) => use(user.id, code, [event()]));
      },
      async remove(remove) {
        await secondFactor();
        await remove(user.id, step, event());
      },
      async renew(renew) {
        await secondFactor();
        await renew(user.id, recovery, ['c', 'd'], event());
      },
      countRecoveryCodes: (countRecoveryCodes) => countRecoveryCodes(user.id),
      async reset(reset) {
        await secondFactor();
        await reset(user, event('second-factor.reset', user.id));
      },
      listSealedOtherwise: (list) => list('key.', '', 100),
      reseal: (reseal) => reseal(user.id, 'a secret', 'another secret'),
    },
    throttle: {
      blockedUntil: (blockedUntil) => blockedUntil([counter], now),
      take: (take) => each([1, 2], () => take([counter], now)),
      giveBack: (giveBack) => giveBack(counter.key),
      reset: (reset) => reset(counter.key),
      sweep: (sweep) => sweep(now),
    },
  };
}
