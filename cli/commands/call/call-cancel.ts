import { CallkeyError } from '../../client/errors.ts';
import type { CallReference } from '../../client/types.ts';
import { type Context, connect } from '../../context.ts';
import { checkedContact, checkedRequestId } from '../../identifiers.ts';
import { diskReason } from '../../state/durable-file.ts';
import { readLastCall } from '../../state/last-call.ts';
import { deletePendingCall } from '../../state/pending-calls.ts';

export type CancelOptions = { contact?: string; requestId?: string; last?: true; run?: string; from?: string };

/** Cancels a call that hasn't been dialed. Cancelling again also succeeds. */
export async function callCancel(context: Context, campaignId: string, options: CancelOptions): Promise<void> {
  const named = namedReference(options);
  const { server, client } = await connect(context);
  try {
    const cancelled = await client.cancel(campaignId, named ?? (await lastCallReference(context, server, campaignId)));
    await deletePendingCall(context.folders, cancelled.requestId).catch((error: unknown) => {
      context.output.note(
        `Couldn't delete the record of this call (${diskReason(error)}). If you repeat the command that placed it within a day, that command will report the call as queued, although it's cancelled.`,
      );
    });
    context.output.answer(cancelled, `Cancelled.\nRequest ID: ${cancelled.requestId}\nContact ID: ${cancelled.contactId}`);
  } finally {
    await client.close();
  }
}

/** Returns the call that the options name, or undefined for --last. */
function namedReference({ contact, requestId, last, run, from }: CancelOptions): CallReference | undefined {
  const references = [contact, requestId, last, run, from].filter((option) => option !== undefined);
  if (references.length !== 1)
    throw new CallkeyError('usage', 'Specify exactly one of --contact ID, --request-id ID, --last, --run RUN or --from FILE.');
  if (contact !== undefined) return { contactId: checkedContact(contact) };
  return requestId === undefined ? undefined : { requestId: checkedRequestId(requestId) };
}

async function lastCallReference(context: Context, server: string, campaignId: string): Promise<CallReference> {
  const last = await readLastCall(context.folders, server, campaignId);
  if (!last)
    throw new CallkeyError(
      'notFound',
      'No call in this campaign was placed from this machine. Specify the call with --request-id or --contact.',
    );
  if ('requestId' in last) return last;
  throw new CallkeyError(
    'usage',
    'The last calls in this campaign came from a file. To cancel all of them, list the runs with callkey call runs, then run callkey call cancel --run RUN. To cancel one, pass its ID as --request-id or --contact.',
  );
}
