import { type Cli, connect } from '../cli.ts';
import type { CallReference } from '../core-client.ts';
import { Failure } from '../failure.ts';
import { checkedCampaign, checkedContact, checkedRequestId } from '../identifiers.ts';
import { readLastCall } from '../last-call.ts';
import { forgetCall } from '../pending-calls.ts';

export type CancelOptions = { contact?: string; requestId?: string; last?: true };

/** Cancels a call that nobody has dialed yet. Cancelling it again is no error. */
export async function callCancel(cli: Cli, campaign: string, options: CancelOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const named = referenceOf(options);
  const { server, client } = await connect(cli);
  try {
    const cancelled = await client.cancel(campaignId, named ?? (await lastOf(cli, server, campaignId)));
    await forgetCall(cli.folders, cancelled.requestId);
    cli.output.answer(cancelled, `Cancelled.\nRequest id: ${cancelled.requestId}\nContact id: ${cancelled.contactId}`);
  } finally {
    await client.close();
  }
}

/** @returns undefined for the last call */
function referenceOf({ contact, requestId, last }: CancelOptions): CallReference | undefined {
  const given = [contact, requestId, last].filter((option) => option !== undefined);
  if (given.length !== 1) throw new Failure('usage', 'Say which call: give one of --contact ID, --request-id ID and --last.');
  if (contact !== undefined) return { contactId: checkedContact(contact) };
  return requestId === undefined ? undefined : { requestId: checkedRequestId(requestId) };
}

async function lastOf(cli: Cli, server: string, campaignId: string): Promise<CallReference> {
  const last = await readLastCall(cli.folders, server, campaignId);
  if (!last) throw new Failure('notFound', 'No call to this campaign has been placed from here. Name one with --request-id or --contact.');
  if ('requestId' in last) return last;
  throw new Failure(
    'usage',
    'The last calls to this campaign came from a file. Name the one to cancel with --request-id or --contact, from the results of the run.',
  );
}
