import type { Knex } from 'knex';
import type { AuditEvent, Digest } from '../../domain/model.ts';
import type { CheckedCode, SecondFactorStore } from '../../domain/ports.ts';
import { lockSession, recordAudit } from '../audit/audit.ts';
import { countRows, type Lanes } from '../engine/database.ts';
import { rejectOrphan } from '../engine/errors.ts';
import { deleteFactor, lockTarget } from './users.ts';

/** A last step this much later than a code's was recorded while a clock was ahead. It's ignored, so that the user isn't locked out. */
const stepsAhead = 20;

export function secondFactorStore({ console: { read, write }, background }: Lanes): SecondFactorStore {
  /** Uses up a code, and changes what it allows to. @returns false if the code isn't accepted */
  function changeWith(
    userId: string,
    code: CheckedCode,
    events: readonly AuditEvent[],
    change?: (trx: Knex.Transaction) => Promise<unknown>,
  ) {
    return write.transaction(async (trx) => {
      if (!(await useUp(trx, userId, code))) return false;
      await change?.(trx);
      for (const event of events) await recordAudit(trx, event);
      return true;
    });
  }

  return {
    async find(userId) {
      const row = await read('second_factors').where({ user_id: userId }).first('secret', 'confirmed_at');
      return row ? { secret: row.secret, isConfirmed: row.confirmed_at !== null } : null;
    },

    async enroll(user, secret, session) {
      const userId = user.id;
      const enrolling = write.transaction(async (trx) => {
        const isUnchanged = await lockTarget(trx, user);
        if (session !== undefined) await lockSession(trx, session);
        if (!isUnchanged) return false;
        const changed = await trx('second_factors').where({ user_id: userId, confirmed_at: null }).update({ secret });
        if (changed > 0) return true;
        const added = await trx('second_factors').insert({ user_id: userId, secret }).onConflict('user_id').ignore().returning('user_id');
        return added.length > 0;
      });
      return enrolling.catch(rejectOrphan);
    },

    async confirm(userId, { secret, step, recoveryDigests, at }, event) {
      return write.transaction(async (trx) => {
        const waiting = trx('second_factors').where({ user_id: userId, secret, confirmed_at: null });
        if ((await waiting.update({ confirmed_at: at, last_step: step })) === 0) return false;
        await insertRecoveryCodes(trx, userId, recoveryDigests);
        await recordAudit(trx, event);
        return true;
      });
    },

    renew: (userId, code, recoveryDigests, event) =>
      changeWith(userId, code, [event], async (trx) => {
        await trx('recovery_codes').where({ user_id: userId }).delete();
        await insertRecoveryCodes(trx, userId, recoveryDigests);
      }),

    countRecoveryCodes: (userId) => countRows(read('recovery_codes').where({ user_id: userId })),

    use: (userId, code, events) => changeWith(userId, code, events),

    remove: (userId, code, event) => changeWith(userId, code, [event], (trx) => deleteFactor(trx, userId)),

    async reset(user, event) {
      return write.transaction(async (trx) => {
        if (!(await lockTarget(trx, user)) || (await deleteFactor(trx, user.id)) === 0) return null;
        return recordAudit(trx, event);
      });
    },

    async listSealedOtherwise(prefix, after, limit) {
      const rows = await background
        .read('second_factors')
        .whereRaw('substr(secret, 1, ?) <> ?', [prefix.length, prefix])
        .where('user_id', '>', after)
        .orderBy('user_id')
        .limit(limit)
        .select('user_id', 'secret');
      return rows.map(({ user_id, secret }) => ({ userId: user_id, secret }));
    },

    async reseal(userId, from, to) {
      await write('second_factors').where({ user_id: userId, secret: from }).update({ secret: to });
    },
  };
}

/**
 * Uses up a code of an active second factor. If several attempts use the same code at the same time, only one succeeds. Locks the second
 * factor first, whatever the kind of code, so that two concurrent renewals leave only one set of recovery codes.
 */
export async function useUp(trx: Knex.Transaction, userId: string, code: CheckedCode): Promise<boolean> {
  if (code.kind === 'step') {
    const factor = trx('second_factors').where({ user_id: userId }).whereNotNull('confirmed_at');
    const isNew = [code.step, code.step + stepsAhead];
    const changed = await factor.whereRaw('(last_step IS NULL OR last_step < ? OR last_step > ?)', isNew).update({ last_step: code.step });
    return changed > 0;
  }
  await trx('second_factors').where({ user_id: userId }).forUpdate().first('user_id');
  return (await trx('recovery_codes').where({ user_id: userId, digest: code.digest }).delete()) > 0;
}

async function insertRecoveryCodes(trx: Knex.Transaction, userId: string, digests: readonly Digest[]): Promise<void> {
  await trx('recovery_codes').insert(digests.map((digest) => ({ user_id: userId, digest })));
}
