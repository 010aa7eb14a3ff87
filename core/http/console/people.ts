import type { Named } from '#contract/console/common.ts';
import type { SessionView, TenanciesView } from '#contract/console/session.ts';
import { readableEmail } from '../../domain/directory/readable-email.ts';
import type { Person, Tenancy, User, Viewer } from '../../domain/model.ts';

/**
 * The only code that decides whether a viewer sees a person's email address, and the addresses from which they or their keys reach the core:
 * only staff see those of other staff.
 */
export function isFullyShown({ isStaff }: Pick<Person, 'isStaff'>, { userType }: Viewer): boolean {
  return userType === 'staff' || !isStaff;
}

export function personView(person: Person, viewer: Viewer): Named & { email?: string } {
  return { id: person.id, name: person.name, ...emailFor(person, viewer) };
}

export function emailFor(person: Person, viewer: Viewer): { email?: string } {
  return person.email !== null && isFullyShown(person, viewer) ? { email: readableEmail(person.email) } : {};
}

export function ownerView(creator: Named, viewer: Viewer) {
  return { isYou: creator.id === viewer.id, name: creator.name };
}

export function viewerView({ id, email, name, userType, account, partner }: User): SessionView['viewer'] {
  return { id, email: readableEmail(email), name, userType, account: named(account), partner: named(partner) };
}

export function tenancyView({ kind, id, name, partnerName }: Tenancy): TenanciesView['tenancies'][number] {
  return { kind, id, name, ...(kind === 'account' ? { partnerName } : {}) };
}

function named(entity: Named | null): Named | null {
  return entity && { id: entity.id, name: entity.name };
}
