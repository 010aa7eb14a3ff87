import type { CallReference } from '../client/core-client.ts';
import { CallkeyError } from '../client/errors.ts';
import { type Context, connect } from '../context.ts';
import { checkedCampaign, checkedContact, checkedRequestId } from '../identifiers.ts';
import { readLastCall } from '../last-call.ts';
import { forgetCall } from '../pending-calls.ts';

export type CancelOptions = { contact?: string; requestId?: string; last?: true };

/** Cancels a call that nobody has dialed yet. Cancelling it again is no error. */
export async function callCancel(context: Context, campaign: string, options: CancelOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const named = referenceOf(options);
  const { server, client } = await connect(context);
  try {
    const cancelled = await client.cancel(campaignId, named ?? (await lastOf(context, server, campaignId)));
    await forgetCall(context.folders, cancelled.requestId);
    context.output.answer(cancelled, `Cancelled.\nRequest id: ${cancelled.requestId}\nContact id: ${cancelled.contactId}`);
  } finally {
    await client.close();
  }
}

/** @returns undefined for the last call */
function referenceOf({ contact, requestId, last }: CancelOptions): CallReference | undefined {
  const given = [contact, requestId, last].filter((option) => option !== undefined);
  if (given.length !== 1) throw new CallkeyError('usage', 'Say which call: give one of --contact ID, --request-id ID and --last.');
  if (contact !== undefined) return { contactId: checkedContact(contact) };
  return requestId === undefined ? undefined : { requestId: checkedRequestId(requestId) };
}

async function lastOf(context: Context, server: string, campaignId: string): Promise<CallReference> {
  const last = await readLastCall(context.folders, server, campaignId);
  if (!last)
    throw new CallkeyError('notFound', 'No call to this campaign has been placed from here. Name one with --request-id or --contact.');
  if ('requestId' in last) return last;
  throw new CallkeyError(
    'usage',
    'The last calls to this campaign came from a file. Name the one to cancel with --request-id or --contact, from the results of the run.',
  );
}
