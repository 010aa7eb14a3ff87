import { restrictedKindNames } from '#contract/protection/numbers.ts';
import { timestamp } from '#contract/text/text.ts';
import type { Millis } from '../instant.ts';
import type { Objection, StopReason } from '../model.ts';
import { Problem } from '../problem.ts';

/** Why calls were stopped, for the metrics. */
export const stopReasons: readonly StopReason[] = ['do-not-call', 'number', 'calling-hours'];

export function toStopReason({ kind }: Objection): StopReason {
  return kind === 'number-kind' || kind === 'country' ? 'number' : 'calling-hours';
}

/** The detail of a call that ends because its number is on a do-not-call list. */
export const listedDetail = 'The number is on a do-not-call list.';

/** Says why a call that was placed can no longer be made. Never contains the number. */
export function describeObjection(objection: Objection): string {
  switch (objection.kind) {
    case 'number-kind':
      return `${restrictedKindNames[objection.numberKind]} can't be called from this account.`;
    case 'country':
      return `${describeCountry(objection)} can't be called from this account.`;
    case 'unknown-time-zone':
      return "Calling hours apply, but the number's time zone is unknown.";
    case 'outside-calling-hours':
      return "Calling hours don't allow the call in time.";
  }
}

/** Returns the problem for a call that can't be placed. */
export function toProblem(objection: Objection, notAfter: Millis | null): Problem {
  switch (objection.kind) {
    case 'number-kind':
    case 'country':
      return invalidContact('phone', describeObjection(objection));
    case 'unknown-time-zone':
      return invalidContact('timeZone', "Calling hours apply, but the number's time zone is unknown: send contact.timeZone.");
    case 'outside-calling-hours':
      return new Problem('outside-calling-hours', describeClosed(objection.opensAt, notAfter));
  }
}

function describeClosed(opensAt: Millis | null, notAfter: Millis | null): string {
  const next = opensAt === null ? 'No window opens within 31 days.' : `The next window opens at ${timestamp(opensAt)}.`;
  return `Calling hours don't allow a call ${notAfter === null ? 'within 30 days' : 'before notAfter'}. ${next}`;
}

function describeCountry({ country }: Extract<Objection, { kind: 'country' }>): string {
  return country === null ? 'Numbers whose country is unknown' : `Numbers in ${country}`;
}

function invalidContact(field: 'phone' | 'timeZone', message: string): Problem {
  const path = `contact.${field}`;
  return new Problem('invalid', `Invalid body at ${path}: ${message}`, { errors: [{ path, message }] });
}
