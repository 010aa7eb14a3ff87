import { expect } from 'chai';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import type { AuditEvent, Digest, Tenancy } from '../../core/domain/model.ts';
import type { SessionStore } from '../../core/domain/ports.ts';
import { maxSessions } from '../../core/storage/users/sessions.ts';
import { at, fakeClock } from '../support/clock.ts';
import { onEachDatabase } from '../support/databases.ts';
import { tenantsOnce } from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('sessions in the database', () => {
  onEachDatabase((kind) => {
    const clock = fakeClock();
    const { direct, tenants } = tenantsOnce(kind, clock);
    let sessions: SessionStore;
    let version: string;

    before(async () => {
      ({ sessions } = direct.ports.stores);
      version = (await user())?.sign_in_version ?? 'missing';
    });
    beforeEach(async () => {
      clock.set('2026-11-21T09:00:00.000Z');
      await rows().delete();
      await direct.storage.database.write('users').update({ sign_in_version: version });
      await direct.storage.database.write('audit_events').delete();
    });

    const rows = () => direct.storage.database.write('sessions');
    const user = (id = tenants.users.account.id) => direct.storage.database.read('users').where({ id }).first();
    const ids = (): Promise<string[]> => direct.storage.database.read('sessions').orderBy('id').pluck('id');
    const events = (): Promise<string[]> => direct.storage.database.read('audit_events').pluck('id');
    const event = (): AuditEvent =>
      auditEvent(direct.ports, operator.actor, 'session.started', { kind: 'session', id: 'u', name: 'Ada' }, null);
    /** Starts a session at the current time. */
    const start = (id: Digest, { of = tenants.users.account.id, at = version, leaving = event() } = {}) =>
      sessions.start({ id, userId: of, at: clock.now(), halfOpenUntil: null }, at, leaving);

    it("start if the way in which the user signs in hasn't changed, update the time of the last sign-in, and record an event", async () => {
      const leaving = event();
      expect(await start('s', { leaving })).to.equal(true);
      expect(await sessions.find('s')).to.deep.equal({
        ...{ user: tenants.users.account, tenancy: null, passwordChangeDue: false, issuer: null },
        ...{ hasSecondFactor: false, halfOpenUntil: null, beganWithLink: false, signInVersion: version },
        ...{ startedAt: clock.now(), lastSeenAt: clock.now() },
      });
      expect([(await user())?.last_sign_in_at, await events()]).to.deep.equal([clock.now(), [leaving.id]]);
      expect((await user(tenants.users.sibling.id))?.last_sign_in_at).to.equal(null);
    });

    it("don't start for an earlier way of signing in, a disabled user or a missing user", async () => {
      expect(await start('s', { at: 'an earlier one' })).to.equal(false);
      expect(await start('s', { of: 'nobody' })).to.equal(false);
      await direct.storage.database
        .write('users')
        .where({ id: tenants.users.account.id })
        .update({ disabled_at: instant(1) });
      expect(await start('s')).to.equal(false);
      await direct.storage.database.write('users').where({ id: tenants.users.account.id }).update({ disabled_at: null });
      expect([await ids(), await events()]).to.deep.equal([[], []]);
    });

    describe('that the provider vouches for', () => {
      const mine = { issuer: 'https://login.example.com', subject: 'ada-there' };
      const startLinked = (subject = mine) =>
        sessions.startLinked(
          { id: 's', userId: tenants.users.account.id, at: clock.now(), halfOpenUntil: null },
          version,
          subject,
          event(),
        );
      beforeEach(() => direct.ports.stores.links.create(tenants.users.account, mine, true, event()));
      afterEach(() => direct.storage.database.write('oidc_links').delete());

      it('start only for the identity that the user is linked to', async () => {
        expect(await startLinked({ ...mine, subject: 'someone-else' })).to.equal(false);
        expect(await startLinked({ ...mine, issuer: 'https://login.example.org' })).to.equal(false);
        expect(await startLinked()).to.equal(true);
      });

      if (kind === 'postgres')
        it("don't start while the user is being unlinked", async () => {
          const { write } = direct.storage.database;
          const starting = await write.transaction(async (trx) => {
            await trx('oidc_links').delete();
            const started = startLinked();
            let isOver = false;
            void started.finally(() => {
              isOver = true;
            });
            // The server also has the databases of other test files.
            const mine = '(SELECT oid FROM pg_database WHERE datname = current_database())';
            const waiting = () => trx('pg_locks').whereRaw(`NOT granted AND pid IN (SELECT pid FROM pg_locks WHERE database = ${mine})`);
            await until(async () => isOver || (await waiting()).length > 0);
            return { started };
          });
          expect(await starting.started).to.equal(false);
        });
    });

    it('record when they were last seen, without restoring an ended session', async () => {
      await start('s');
      await start('other');
      const startedAt = clock.now();
      clock.advance({ hours: 1 });
      await sessions.touch('s', clock.now());
      await sessions.touch('ended', clock.now());
      expect(await sessions.find('s')).to.deep.include({ startedAt, lastSeenAt: clock.now() });
      expect(await sessions.find('other')).to.deep.include({ lastSeenAt: startedAt });
      expect(await ids()).to.deep.equal(['other', 's']);
    });

    it('keep the tenancy that staff have selected until they select another or clear it', async () => {
      await start('s', { of: tenants.users.staff.id });
      await start('other', { of: tenants.users.staff.id });
      const { account, partner } = tenants;
      const ofAccount: Tenancy = { ...account, kind: 'account', partnerName: partner.name };
      const ofPartner: Tenancy = { ...partner, kind: 'partner', partnerId: partner.id, partnerName: partner.name };
      for (const tenancy of [ofAccount, ofPartner, null]) {
        expect(await sessions.selectTenancy('s', tenancy)).to.equal(true);
        expect([(await sessions.find('s'))?.tenancy, (await sessions.find('other'))?.tenancy]).to.deep.equal([tenancy, null]);
      }
    });

    it("don't have a tenancy once their user is no longer staff", async () => {
      await start('s', { of: tenants.users.partner.id });
      await sessions.selectTenancy('s', { ...tenants.account, kind: 'account', partnerName: tenants.partner.name });
      expect((await sessions.find('s'))?.tenancy).to.equal(null);
    });

    it("that have ended can't select a tenancy", async () => {
      expect(await sessions.selectTenancy('s', null)).to.equal(false);
    });

    it('end only once, and record an event', async () => {
      await start('s');
      await start('other');
      const leaving = event();
      expect(await sessions.end('s', leaving)).to.equal(true);
      expect(await sessions.end('s', event())).to.equal(false);
      expect([await ids(), (await events()).filter((id) => id === leaving.id), (await events()).length]).to.deep.equal([
        ...[['other'], [leaving.id], 3],
      ]);
    });

    it("of a user can all be ended without ending other users' sessions", async () => {
      await start('s');
      await start('t');
      await start('other', { of: tenants.users.sibling.id });
      expect(
        await sessions.endAll({ ...event(), action: 'session.revoked', subject: { kind: 'user', ...tenants.users.account } }),
      ).to.equal(2);
      expect([await ids(), (await events()).length]).to.deep.equal([['other'], 4]);
    });

    it('are ended, least recently used first, if a user has too many of the same kind', async () => {
      await start('other', { of: tenants.users.sibling.id });
      const kept = ['other'];
      for (const [kind, halfOpenUntil] of [
        ['open', null],
        ['half-open', at('2026-11-21T10:00:00.000Z')],
      ] as const) {
        const names = Array.from({ length: maxSessions + 1 }, (_, n) => `${kind} ${n}`);
        for (const id of names) {
          clock.advance({ milliseconds: 1 });
          if (id === names.at(-1)) await sessions.touch(`${kind} 0`, clock.now());
          await sessions.start({ id, userId: tenants.users.account.id, at: clock.now(), halfOpenUntil }, version, null);
        }
        kept.push(...names.filter((name) => name !== `${kind} 1`));
      }
      expect(await ids()).to.have.members(kept);
    });

    it('are deleted if they started, or were last seen, too long ago or in the future', async () => {
      const [early, now, late] = ['2026-11-21T08:59:59.999Z', '2026-11-21T09:00:00.000Z', '2026-11-21T09:00:00.001Z'];
      for (const [id, startedAt, seenAt] of [
        ['kept', now, now],
        ['started-early', early, now],
        ['started-late', late, now],
        ['seen-early', now, early],
        ['seen-late', now, late],
      ] as const) {
        clock.set(startedAt);
        await start(id);
        await sessions.touch(id, at(seenAt));
      }
      const bounds = { startedAfter: at(now), seenAfter: at(now), before: at(now), now: at(now) };
      await sessions.sweep(bounds);
      expect(await ids()).to.deep.equal(['kept']);
    });
  });
});
