import type { Command } from 'commander';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { CallReference } from '../client/types.ts';
import type { Context, WithContext } from '../connection/context.ts';
import { addPaceOptions, campaignArgument, examples, type PaceOptions, shellCommand, toPace } from '../terminal/help.ts';

type CancelOptions = PaceOptions & { contact?: string; requestId?: string; last?: true; run?: string; from?: string; columns?: string };

export function addCancel(call: Command, withContext: WithContext): void {
  const cancel = call
    .command('cancel')
    .argument(...campaignArgument)
    .option('--contact <id>', 'contact ID, from the output of the command that placed the call')
    .option('--request-id <id>', 'request ID')
    .option('--last', 'the last call placed to this campaign from this machine')
    .option('--run <run>', 'all calls that a command placed from a file (see callkey call runs)')
    .option('--from <file>', 'all calls in a file: the results of call place, or the file that was placed')
    .option('--columns <pairs>', 'with --from: the same value as for call place');
  addPaceOptions(cancel, 'with --run or --from: ', 'cancel')
    .description('cancel calls before they are dialed')
    .addHelpText(
      'after',
      examples(
        'callkey call cancel CAMPAIGN --last',
        'callkey call cancel CAMPAIGN --request-id order-4711',
        'callkey call cancel --run 5f3a9c01',
        'callkey call cancel CAMPAIGN --from results.ndjson',
      ),
    )
    .action((campaign: string | undefined, options: CancelOptions) => withContext((context) => cancelAny(context, campaign, options)));
}

async function cancelAny(context: Context, campaign: string | undefined, options: CancelOptions): Promise<void> {
  const { run, from, columns, contact, requestId, last } = options;
  if (columns !== undefined && from === undefined) throw usageError('--columns works only with --from FILE. Add it, or remove --columns.');
  const isOnlyOne = [run, from, contact, requestId, last].filter((option) => option !== undefined).length === 1;
  if (isOnlyOne && run !== undefined) return cancelRun(context, campaign, run, options);
  if (isOnlyOne && from !== undefined) {
    const { cancelFile } = await import('../batch/cancel-file.ts');
    const { parseColumns, plainReading } = await import('../batch/reading.ts');
    const reading = { ...plainReading, columns: columns === undefined ? {} : parseColumns(columns) };
    return cancelFile(context, await context.campaignId(campaign), from, toPace(options), reading);
  }
  const campaignId = await context.campaignId(campaign);
  if (isOnlyOne) return cancelOne(context, campaignId, options);
  throw usageError('Specify exactly one of --contact ID, --request-id ID, --last, --run RUN or --from FILE.');
}

/** Cancels a call that hasn't been dialed. Cancelling again also succeeds. */
async function cancelOne(context: Context, campaignId: string, options: CancelOptions): Promise<void> {
  const { deletePendingCall, readLastCall } = await import('../state/single-calls.ts');
  const { diskReason } = await import('../state/durable-file.ts');
  const named = await namedCall(options);
  const { server, client } = await context.connect();
  try {
    const cancelled = await client.cancel(campaignId, named ?? lastCall(context, await readLastCall(context.folders, server, campaignId)));
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

/** Returns the call that the options name, or undefined for --last. Like keys, IDs may have spaces or a line end around them. */
async function namedCall({ contact, requestId }: CancelOptions): Promise<CallReference | undefined> {
  const { isRequestId, requestIdRule } = await import('#contract/calls/calls.ts');
  const { isIdentifier } = await import('#contract/text/text.ts');
  const contactId = contact?.trim();
  if (contactId !== undefined && !isIdentifier(contactId))
    throw usageError(`"${contact}" isn't a valid contact ID. Copy it from the output of the command that placed the call.`);
  if (contactId !== undefined) return { contactId };
  const id = requestId?.trim();
  if (id === undefined) return undefined;
  if (isRequestId(id)) return { requestId: id };
  throw usageError(`"${requestId}" isn't a valid request ID. It must be ${requestIdRule}.`);
}

function lastCall({ options: { state } }: Context, last: { requestId: string } | { fromFile: true } | undefined): CallReference {
  if (!last)
    throw new CallkeyError(
      'notFound',
      'No call in this campaign was placed from this machine. Specify the call with --request-id or --contact.',
    );
  if ('requestId' in last) return last;
  const [list, cancel] = [shellCommand({ state }, 'call', 'runs'), shellCommand({ state }, 'call', 'cancel', '--run', 'RUN')];
  throw usageError(
    `The last calls in this campaign came from a file. To cancel all of them, list the runs with ${list}, then run ${cancel}. To cancel one, pass its ID as --request-id or --contact.`,
  );
}

async function cancelRun(context: Context, campaign: string | undefined, name: string, pace: PaceOptions): Promise<void> {
  const campaignId = campaign === undefined ? undefined : await context.campaignId(campaign);
  const { findRun } = await import('../batch/run-journal.ts');
  const run = await findRun(context.folders, name);
  if (campaignId !== undefined && campaignId !== run.header.campaignId)
    throw usageError(`The run ${name} belongs to the campaign ${run.header.campaignId}. Remove the campaign from the command.`);
  const batch = await import('../batch/cancel-file.ts');
  await batch.cancelRun(context, run, toPace(pace));
}
