import { isRequestId, requestIdRule } from '#contract/calls/calls.ts';
import { isIdentifier } from '#contract/text/text.ts';
import { CallkeyError } from './client/errors.ts';

// IDs are checked before anything is sent, since a text such as two dots would change the request path.

/** @throws CallkeyError `usage` */
export function checkedCampaign(text: string): string {
  if (isIdentifier(text)) return text;
  throw new CallkeyError('usage', `"${text}" isn't a valid campaign ID. Copy the ID from the console.`);
}

/** @throws CallkeyError `usage` */
export function checkedContact(text: string): string {
  if (isIdentifier(text)) return text;
  throw new CallkeyError('usage', `"${text}" isn't a valid contact ID. Copy it from the output of the command that placed the call.`);
}

/** @throws CallkeyError `usage` */
export function checkedRequestId(text: string): string {
  if (isRequestId(text)) return text;
  throw new CallkeyError('usage', `"${text}" isn't a valid request ID. It must be ${requestIdRule}.`);
}
