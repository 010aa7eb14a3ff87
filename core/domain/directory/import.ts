import type { AuditAction } from '#contract/console/activity.ts';
import { auditEvent } from '../audit/audit.ts';
import type { Actor, ImportAddition, ImportedEntity, ImportKind, OwningScope } from '../model.ts';
import type { ImportStore, Ports } from '../ports.ts';
import { Problem } from '../problem.ts';
import type { ImportFile } from './import-file.ts';
import { type PlannedEntity, planImport, singular } from './import-plan.ts';
import { makeOneTimePassword } from './users.ts';

type ImportCounts = { added: number; changed: number; unchanged: number };
export type ImportResult = Record<ImportKind, ImportCounts> & {
  /** One-time passwords of the users that were added. */
  passwords: { email: string; password: string }[];
  /** One-time passwords of users who may have been added, because a step failed without saying whether it was written. */
  uncertain: { email: string; password: string }[];
  /** The users who have another email address, type or place now, so that their sessions have ended. */
  signedOut: SignedOutUser[];
};

/** @property unlinked whether the user was linked to an identity at the provider, which may be another person's */
type SignedOutUser = { email: string | null; previousEmail: string | null; sessions: number; unlinked: boolean };

/** The number of entities per transaction. Other writers of a SQLite file wait during each one. */
const entitiesPerStep = 500;
/**
 * Smaller than `entitiesPerStep`, because each new user needs a password hash first, and an interrupted import computes all hashes of its
 * step before it stops.
 */
const usersPerStep = 25;

/** An import that stopped between two steps. Everything counted in `soFar` was written, and is kept. */
export class ImportInterrupted extends Error {
  readonly soFar: ImportResult;

  constructor(soFar: ImportResult, cause: unknown) {
    super('The import was interrupted.', { cause });
    this.name = 'ImportInterrupted';
    this.soFar = soFar;
  }
}

/**
 * Creates and changes the entities in the file, and nothing else. Users can be moved, disabled and enabled, and get another type, which
 * applies to their keys from the next request; accounts and campaigns can't be moved. Checks as much as possible before the first write, then writes in steps.
 * Importing the same file again changes nothing, or finishes an interrupted import.
 *
 * @param pause runs between two steps, so that others can write. If it throws, the import stops
 * @throws Problem if nothing was written
 * @throws ImportInterrupted if something was written, or users may have been
 */
export async function importAll(
  ports: Ports,
  imports: ImportStore,
  pause: () => Promise<void>,
  actor: Actor,
  file: ImportFile,
): Promise<ImportResult> {
  const plans = await planImport(ports, imports, file);
  const result: ImportResult = {
    partners: counts(),
    accounts: counts(),
    campaigns: counts(),
    users: counts(),
    passwords: [],
    uncertain: [],
    signedOut: [],
  };
  let hasWritten = false;
  try {
    for (const { kind, planned, unchanged } of plans) {
      result[kind].unchanged = unchanged;
      const size = kind === 'users' ? usersPerStep : entitiesPerStep;
      for (let start = 0; start < planned.length; start += size) {
        if (hasWritten) await pause();
        await writeStep(ports, imports, actor, kind, planned.slice(start, start + size), result);
        hasWritten = true;
      }
    }
    return result;
  } catch (error) {
    throw hasWritten || result.uncertain.length > 0 ? new ImportInterrupted(result, error) : error;
  }
}

async function writeStep(
  ports: Ports,
  imports: ImportStore,
  actor: Actor,
  kind: ImportKind,
  step: readonly PlannedEntity[],
  result: ImportResult,
): Promise<void> {
  const subject = singular[kind];
  const record = (entity: ImportedEntity, action: AuditAction) =>
    auditEvent(ports, actor, action, { kind: subject, id: entity.id, name: entity.name }, getOwningScope(kind, entity));
  const recordDisabling = ({ entity, isToggled }: PlannedEntity) =>
    isToggled ? record(entity, entity.disabled ? 'user.disabled' : 'user.enabled') : null;
  const added: ImportAddition[] = [];
  const passwords: ImportResult['passwords'] = [];
  for (const planned of step.filter(({ verb }) => verb === 'added')) {
    // Hash before the transaction, because hashing is slow.
    const oneTimePassword = kind === 'users' ? await makeOneTimePassword(ports) : null;
    if (oneTimePassword && planned.entity.email !== null)
      passwords.push({ email: planned.entity.email, password: oneTimePassword.password });
    const event = record(planned.entity, `${subject}.added`);
    added.push({ entity: planned.entity, password: oneTimePassword?.stored ?? null, event, disabling: recordDisabling(planned) });
  }
  const changed = step
    .filter(({ verb }) => verb !== 'added')
    .map((planned) => {
      const event = planned.verb && record(planned.entity, `${subject}.changed`);
      const unlinking = planned.previousEmail === null ? null : record(planned.entity, 'user.unlinked');
      return { entity: planned.entity, event, unlinking, disabling: recordDisabling(planned) };
    });
  const ended = await imports.write(kind, { added, changed }).catch((error) => {
    // A refusal means that nothing was written. After any other error, such as a lost connection, the users may exist.
    if (!(error instanceof Problem) || error.code === 'unavailable') result.uncertain.push(...passwords);
    throw error;
  });
  result[kind].added += added.length;
  result[kind].changed += changed.length;
  result.passwords.push(...passwords);
  for (const { entity, previousEmail } of step) {
    const { sessions, unlinked } = ended.get(entity.id) ?? { sessions: 0, unlinked: false };
    if (sessions > 0 || unlinked || previousEmail !== null)
      result.signedOut.push({ email: entity.email, previousEmail, sessions, unlinked });
  }
}

function getOwningScope(kind: ImportKind, entity: ImportedEntity): OwningScope | null {
  if (kind === 'partners') return { accountId: null, partnerId: entity.id };
  if (entity.partnerId === null) return null;
  return { accountId: kind === 'accounts' ? entity.id : entity.accountId, partnerId: entity.partnerId };
}

function counts(): ImportCounts {
  return { added: 0, changed: 0, unchanged: 0 };
}
