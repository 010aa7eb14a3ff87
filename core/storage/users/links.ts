import { plus } from '../../domain/instant.ts';
import type { LinkStore } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import type { Lanes } from '../engine/database.ts';
import { isUniqueViolation, rejectOrphan } from '../engine/errors.ts';
import type { LinkRow, SignInCodeRow, UserRow } from '../engine/tables.ts';
import { deleteFactor, deleteLink, lockTarget, type NamedUserRow, selectUsers, toUser } from './users.ts';

export function linkStore({ console: { read, write }, background }: Lanes): LinkStore {
  return {
    async find({ issuer, subject }) {
      const [row]: (NamedUserRow & Pick<UserRow, 'disabled_at' | 'sign_in_version'>)[] = await selectUsers(read)
        .join('oidc_links as l', 'l.user_id', 'u.id')
        .select('u.disabled_at', 'u.sign_in_version')
        .where({ 'l.issuer': issuer, 'l.subject': subject });
      return row ? { user: toUser(row), disabledAt: row.disabled_at, signInVersion: row.sign_in_version } : null;
    },

    async create(target, { issuer, subject }, keepsPassword, event) {
      const linking = write.transaction(async (trx) => {
        const userId = target.id;
        // If two people with the same email address sign in at the same time, this lock lets only one of them be linked.
        if (!(await lockTarget(trx, target))) return false;
        const user = await trx('users').where({ id: userId, disabled_at: null }).first('password_handed_out');
        if (user === undefined) return false;
        await trx('oidc_links').where({ user_id: userId }).whereNot({ issuer }).delete();
        if ((await trx('oidc_links').where({ user_id: userId }).first('user_id')) !== undefined) return false;
        await trx('oidc_links').insert({ user_id: userId, issuer, subject, linked_at: event.at });
        if (user.password_handed_out !== null && !keepsPassword) {
          // The password has expired, so that it can't be used or changed anymore. Only an administrator can replace it.
          await trx('users')
            .where({ id: userId })
            .update({ password_expires_at: plus(event.at, -1) });
          await deleteFactor(trx, userId);
        }
        await recordAudit(trx, event);
        return true;
      });
      return linking.catch((error: unknown) => {
        if (isUniqueViolation(error)) return false;
        throw error;
      });
    },

    async delete(user, event) {
      return write.transaction(async (trx) => {
        const deleted = (await lockTarget(trx, user)) && (await deleteLink(trx, user.id));
        if (deleted) await recordAudit(trx, event);
        return deleted;
      });
    },

    async list() {
      const rows: (LinkRow & { email: string })[] = await read('oidc_links as l')
        .join('users as u', 'u.id', 'l.user_id')
        .whereNull('u.deleted_at')
        .orderBy('u.email')
        .select('l.*', 'u.email');
      return rows.map(({ email, issuer, subject, linked_at }) => ({ email, issuer, subject, linkedAt: linked_at }));
    },

    async createCode({ digest, userId, signInVersion, issuer, subject, challenge, expiresAt }) {
      await write('sign_in_codes')
        .insert({ digest, user_id: userId, sign_in_version: signInVersion, issuer, subject, challenge, expires_at: expiresAt })
        .catch(rejectOrphan);
    },

    async takeCode(digest) {
      // Anyone can send made-up codes, so these requests must not compete with writers.
      if (!(await read('sign_in_codes').where({ digest }).first('digest'))) return null;
      const row = await write.transaction(async (trx) => {
        const code: SignInCodeRow | undefined = await trx('sign_in_codes').where({ digest }).forUpdate().first();
        await trx('sign_in_codes').where({ digest }).delete();
        return code;
      });
      if (!row) return null;
      const { user_id, sign_in_version, issuer, subject, challenge, expires_at } = row;
      return { digest, userId: user_id, signInVersion: sign_in_version, issuer, subject, challenge, expiresAt: expires_at };
    },

    async sweepCodes(before) {
      await background.write('sign_in_codes').where('expires_at', '<', before).delete();
    },
  };
}
