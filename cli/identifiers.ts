import { isRequestId, requestIdRule } from '#contract/calls/calls.ts';
import { isIdentifier } from '#contract/text/text.ts';
import { CallkeyError } from './client/errors.ts';

// IDs are checked before anything is sent, since a text such as two dots would change the request path. Like keys, they may have spaces or a
// line end around them, because files and variables from Windows end in CR LF.

/** @throws CallkeyError `usage` */
export function checkedCampaign(text: string): string {
  const id = text.trim();
  if (isIdentifier(id)) return id;
  throw new CallkeyError('usage', `"${text}" isn't a valid campaign ID. Copy the ID from the console.`);
}

/** @throws CallkeyError `usage` */
export function checkedContact(text: string): string {
  const id = text.trim();
  if (isIdentifier(id)) return id;
  throw new CallkeyError('usage', `"${text}" isn't a valid contact ID. Copy it from the output of the command that placed the call.`);
}

/** @throws CallkeyError `usage` */
export function checkedRequestId(text: string): string {
  const id = text.trim();
  if (isRequestId(id)) return id;
  throw new CallkeyError('usage', `"${text}" isn't a valid request ID. It must be ${requestIdRule}.`);
}
