import { isRequestId } from '#contract/calls.ts';
import { isIdentifier } from '#contract/text.ts';
import { CallkeyError } from './client/errors.ts';

/** What cannot be an identifier is told at once; some of it, such as two dots, would even make another path. */
export function checkedCampaign(text: string): string {
  if (isIdentifier(text)) return text;
  throw new CallkeyError('usage', `"${text}" is no campaign id. Copy it from the console.`);
}

export function checkedContact(text: string): string {
  if (isIdentifier(text)) return text;
  throw new CallkeyError('usage', `"${text}" is no contact id. It is the contactId that placing the call answered.`);
}

export function checkedRequestId(text: string): string {
  if (isRequestId(text)) return text;
  throw new CallkeyError('usage', `"${text}" is no request id: it has 1 to 128 of A-Z a-z 0-9 . _ ~ - and :.`);
}
