import { expect } from 'chai';
import { clockSkew } from '../../core/domain/deadlines.ts';
import { instant, plus } from '../../core/domain/instant.ts';
import type { ThrottleStore } from '../../core/domain/ports.ts';
import { checkPassword, maxWindow } from '../../core/domain/sign-in/throttle.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import { maxThrottleCounters, throttleStore } from '../../core/storage/users/throttle.ts';
import { freshDatabase, onEachDatabase, recordStatements } from '../support/databases.ts';
import { credentialsOf, fakePorts, viewers } from '../support/ports.ts';
import { openOnce } from '../support/suites.ts';
import { openDirect } from '../support/tenants.ts';

const now = instant(1_795_000_000_000);
const window = 60_000;
const one = { key: 'one', max: 2, window };
const other = { key: 'other', max: 3, window: 2 * window };

describe('attempt counters', () => {
  onEachDatabase((kind) => {
    const direct = openOnce(async () => openDirect(await freshDatabase(kind)));
    let throttle: ThrottleStore;
    beforeEach(async () => {
      ({ throttle } = direct.storage);
      await counters().delete();
    });

    const throttleOn = (database: Lane) => throttleStore({ ...direct.storage.database.lanes, 'sign-in': database });
    const counters = () => direct.storage.database.write('sign_in_attempts');
    const attempts = async (): Promise<Record<string, number>> => {
      const rows: { key: string; attempts: number }[] = await counters().orderBy('key');
      return Object.fromEntries(rows.map((row) => [row.key, row.attempts]));
    };
    const take = (at: number = now, ...which: (typeof one)[]) => throttle.take(which.length === 0 ? [one, other] : which, instant(at));

    it('allow a fixed number of attempts, and are then full until their window is over', async () => {
      expect(await take()).to.equal(true);
      expect(await throttle.blockedUntil([one, other], now)).to.equal(null);
      expect(await take(now + 1)).to.equal(true);
      expect(await take(now + 2)).to.equal(false);
      expect(await attempts()).to.deep.equal({ one: 2, other: 2 });
      expect(await throttle.blockedUntil([one, other], instant(now + 2))).to.equal(now + window);
      expect([
        await throttle.blockedUntil([other], instant(now + 2)),
        await throttle.blockedUntil([one], instant(now + window)),
      ]).to.deep.equal([null, null]);
    });

    it('block attempts until the last full counter expires', async () => {
      await counters().insert([
        { key: 'one', attempts: 2, expires_at: instant(now + window) },
        { key: 'other', attempts: 3, expires_at: instant(now + 2 * window) },
      ]);
      expect(await throttle.blockedUntil([one, other], now)).to.equal(now + 2 * window);
    });

    it('restart when their window is over', async () => {
      await take();
      await take();
      expect(await take(now + window)).to.equal(true);
      expect(await attempts()).to.deep.equal({ one: 1, other: 3 });
    });

    it('also count on a core whose clock is behind by up to five minutes, but not by more', async () => {
      const skew = clockSkew.toMillis();
      for (let n = 0; n < 2; n++) await take(now + skew, one);
      expect([await throttle.blockedUntil([one], now), await take(now, one)]).to.deep.equal([now + skew + window, false]);
      expect(await throttle.blockedUntil([one], instant(now - 1))).to.equal(null);
      expect(await take(now - 1, one)).to.equal(true);
      expect(await take(now, one)).to.equal(true);
      expect(await attempts()).to.deep.equal({ one: 2 });
    });

    it('restart if the clock was set back by more than their window', async () => {
      await take(now + 400 * 86_400_000);
      await take(now + 400 * 86_400_000);
      expect(await throttle.blockedUntil([one], now)).to.equal(null);
      expect(await take()).to.equal(true);
      expect(await attempts()).to.deep.equal({ one: 1, other: 1 });
    });

    it("refuse an attempt that exceeds a limit together with concurrent attempts, and don't count it", async () => {
      // Simulates PostgreSQL, where each of several concurrent statements sees the counters as they were before the others.
      const { database } = direct.storage;
      const { take: takeWithOthers } = throttleOn({
        ...database,
        prepare: <Found extends object>(sql: string, mode: 'read' | 'read back' | 'write') => {
          const run = database.prepare<Found>(sql, mode);
          if (mode === 'read') return run;
          return async (rows) => {
            await run(rows);
            await counters().increment('attempts', 2);
            const counted: Found[] = JSON.parse(JSON.stringify(await counters().select('key', 'attempts')));
            return { rows: counted, changed: 2 };
          };
        },
      });
      expect(await takeWithOthers([one, other], now)).to.equal(false);
      expect(await attempts()).to.deep.equal({ one: 2, other: 2 });
    });

    it('are changed on the writing connection and read on another', async () => {
      const { database, ran } = recordStatements(direct.storage.database);
      const { take: takeOne, blockedUntil } = throttleOn(database);
      await takeOne([one], now);
      await blockedUntil([one], now);
      expect(ran).to.deep.equal(['write WITH asked', 'read SELECT asked.n,']);
    });

    it('can take back an attempt, but only if it was counted', async () => {
      await take();
      await throttle.giveBack('one');
      await throttle.giveBack('one');
      await throttle.giveBack('none');
      expect(await attempts()).to.deep.equal({ one: 0, other: 1 });
    });

    it('are all cleared once concurrent sign-ins of one user have succeeded, in whatever order their steps run', async () => {
      const { email } = viewers.account;
      const waiting: (() => Promise<unknown>)[] = [];
      // Each step waits until the test runs it, one after the other.
      const inOrder =
        <Args extends unknown[], Result>(step: (...args: Args) => Promise<Result>) =>
        (...args: Args) =>
          new Promise<Result>((resolve, reject) => {
            waiting.push(() => step(...args).then(resolve, reject));
          });
      const { blockedUntil, take, reset, giveBack } = throttle;
      const steps = { blockedUntil: inOrder(blockedUntil), take: inOrder(take), reset: inOrder(reset), giveBack: inOrder(giveBack) };
      const findByEmail = async () => credentialsOf(viewers.account);
      const ports = fakePorts({
        ...{ throttle: { ...throttle, ...steps }, stores: { users: { findByEmail } } },
        passwords: { verify: (find) => find() },
      });
      for (const seed of Array.from({ length: 40 }, (_, n) => n * 131 + 7)) {
        const signIn = () => checkPassword(ports, { email, address: '192.0.2.1', vouched: null }, email, 'right');
        let left = 6;
        const all = Promise.all(Array.from({ length: left }, () => signIn().finally(() => left--)));
        for (let random = seed; left > 0; random = (random * 75 + 74) % 65_537) {
          await waiting.splice(random % Math.max(1, waiting.length), 1)[0]?.();
          await new Promise(setImmediate);
        }
        await all;
        expect(
          Object.values(await attempts()).filter((count) => count > 0),
          `seed ${seed}`,
        ).to.deep.equal([]);
      }
    });

    it('are reset one at a time', async () => {
      await take();
      await throttle.reset('one', now);
      expect(await attempts()).to.deep.equal({ other: 1 });
    });

    it("are deleted when they expire, or if they expire so late that even a core with a fast clock can't have started them", async () => {
      const longest = plus(now, maxWindow + clockSkew.toMillis());
      const expires = { over: now, live: plus(now, 1), longest, ahead: plus(longest, 1) };
      await counters().insert(Object.entries(expires).map(([key, expires_at]) => ({ key, attempts: 1, expires_at })));
      await throttle.sweep(now);
      expect(Object.keys(await attempts())).to.deep.equal(['live', 'longest']);
    });

    if (kind === 'postgres') {
      it('are deleted without waiting for counters locked by an attempt', async () => {
        await counters().insert(['locked', 'over'].map((key) => ({ key, attempts: 1, expires_at: now })));
        await direct.storage.database.write.transaction(async (trx) => {
          await trx('sign_in_attempts').where({ key: 'locked' }).forUpdate().first();
          await throttle.sweep(now);
        });
        expect(await attempts()).to.deep.equal({ locked: 1 });
      });
    }

    it('are limited in number during a flood: every thousandth attempt keeps only those with the highest counts and, if counts are equal, those that expire last', async () => {
      const expire = plus(now, window);
      const series =
        kind === 'sqlite'
          ? 'WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?) SELECT n FROM s'
          : 'SELECT generate_series(1, CAST(? AS integer)) AS n';
      await direct.storage.database.write.raw(
        `INSERT INTO sign_in_attempts (key, attempts, expires_at) SELECT 'flood:' || n, 1, CAST(? AS bigint) + n FROM (${series}) AS numbers`,
        [expire, maxThrottleCounters + 500],
      );
      await counters().insert({ key: 'full', attempts: 10, expires_at: expire });
      const { take: takeFrom } = throttleStore(direct.storage.database.lanes);
      const count = async () => Number((await counters().count({ rows: '*' }).first<{ rows: number | string }>()).rows);
      for (let n = 0; n < 999; n++) await takeFrom([{ key: 'one', max: 2_000, window }], now);
      expect(await count()).to.equal(maxThrottleCounters + 502);
      await takeFrom([{ key: 'one', max: 2_000, window }], now);
      expect(await count()).to.equal(maxThrottleCounters);
      expect(
        (await counters().whereIn('key', ['one', 'full']).orderBy('attempts')).map((row: { attempts: number }) => row.attempts),
      ).to.deep.equal([10, 1_000]);
      const { first } = await counters().whereLike('key', 'flood:%').min({ first: 'expires_at' }).first<{ first: number }>();
      expect(first).to.equal(expire + 503);
    });
  });
});
