import type { PlaceCall } from '#contract/calls/calls.ts';
import { parseCountry, validateCall } from '../../batch/file/reading.ts';
import { CallkeyError } from '../../client/errors.ts';
import type { Call, PlacedCall } from '../../client/types.ts';
import { type Context, connect, retryNotes } from '../../context.ts';
import { diskReason } from '../../state/durable-file.ts';
import { readLastCall, rememberLastCall } from '../../state/last-call.ts';
import { beginCall } from '../../state/pending-calls.ts';
import { parseZone, toUtc } from '../../terminal/local-time.ts';
import { shellCommand } from '../../terminal/shell-command.ts';

export type CallOptions = {
  phone?: string;
  name?: string;
  timeZone?: string;
  country?: string;
  zone?: string;
  var?: readonly string[];
  notBefore?: string;
  notAfter?: string;
  requestId?: string;
  dryRun?: boolean;
};

/** Places one call. Writes its request ID to disk before sending it, so that the same command sends the same ID after a crash. */
export async function callPlace(context: Context, campaignId: string, options: CallOptions): Promise<void> {
  const call = toCall(options);
  if (options.dryRun) {
    context.output.answer(
      { status: 'would-place', campaignId, ...call },
      `Would place a call to ${call.contact.phone} if the do-not-call lists and calling hours allow it. Only the server can check these. Nothing was sent.`,
    );
    return;
  }
  let inDoubt = false;
  const note = retryNotes(context);
  const onRetry = (reason: string) => {
    inDoubt = true;
    note(reason);
  };
  const { server, client } = await connect(context, { retry: { onRetry } });
  try {
    const recorded = await record(context, server, campaignId, call);
    inDoubt ||= recorded.adopted;
    const answer = client.place(campaignId, recorded.call).catch(async (error: unknown) => {
      if (!(error instanceof CallkeyError)) throw error;
      if (error.kind === 'unreachable' && error.code !== 'too-many-calls') throw withAdvice(error, recorded);
      // If the first attempt was refused, nothing was placed. This includes a key that has placed all its calls for today. But if there
      // were retries, an earlier attempt may have placed the call.
      if (!inDoubt && (error.kind !== 'failed' || sentNothing(error))) await recorded.undo();
      throw error;
    });
    const placed = await answer.finally(recorded.release);
    await recorded.settle();
    context.output.answer(placed, formatResult(context, placed, call.contact.phone));
  } finally {
    await client.close();
  }
}

/** Whether an error means that the request wasn't sent: see connection-errors.ts. */
function sentNothing({ code }: CallkeyError): boolean {
  return code === 'untrusted-certificate' || code === 'proxy-refused';
}

type Recorded = { call: Call; adopted: boolean; settle(): Promise<void>; undo(): Promise<void>; release(): void };

/** Writes to disk which call is about to be sent. */
async function record(context: Context, server: string, campaignId: string, call: PlaceCall): Promise<Recorded> {
  const { folders, output } = context;
  const pending = call.requestId === undefined ? await beginCall(folders, server, campaignId, call) : undefined;
  const requestId = call.requestId ?? pending?.requestId ?? '';
  if (pending?.adopted) output.note(`The last run of this command ended without a response. Retrying with its request ID, ${requestId}.`);
  // If the file can't be read, the write below replaces it, or reports that it can't be written.
  const lastBefore = await readLastCall(folders, server, campaignId).catch(() => undefined);
  await rememberLastCall(context, server, campaignId, { requestId });
  const settle = async () =>
    pending?.settle().catch((error: unknown) => {
      output.note(
        `Couldn't delete the record of this call (${diskReason(error)}). For the next 24 hours, running the same command won't place a new call, because it sends the same request ID.`,
      );
    });
  const undo = async () => {
    await settle();
    await rememberLastCall(context, server, campaignId, lastBefore);
  };
  return { call: { ...call, requestId }, adopted: pending?.adopted ?? false, settle, undo, release: () => pending?.release() };
}

function toCall({ phone, name, timeZone, country, zone, var: variables = [], requestId, ...times }: CallOptions): PlaceCall {
  if (phone === undefined)
    throw new CallkeyError('usage', 'Specify a phone number (--phone +493012345678) or a file of calls (--from FILE).');
  const notBefore = readTime('--not-before', times.notBefore, zone);
  const notAfter = readTime('--not-after', times.notAfter, zone);
  const parsed = variables.length === 0 ? undefined : parseVariables(variables);
  const input = {
    requestId: requestId?.trim(),
    contact: omitUndefined({ phone, name, timeZone }),
    variables: parsed,
    notBefore,
    notAfter,
  };
  const validated = validateCall(omitUndefined(input), country === undefined ? undefined : parseCountry(country));
  if (validated.ok) return validated.data;
  throw new CallkeyError('usage', validated.errors.map(({ path, message }) => `${toFlag(path)}: ${message}`).join('\n'));
}

function readTime(option: string, text: string | undefined, zone: string | undefined): string | undefined {
  const parsedZone = zone === undefined ? null : parseZone(zone);
  if (text === undefined) return undefined;
  const utc = toUtc(text, parsedZone);
  if ('time' in utc) return utc.time;
  throw new CallkeyError('usage', `${option} ${text}: ${utc.reason}`);
}

function parseVariables(pairs: readonly string[]): Record<string, string> {
  const entries = pairs.map((pair): [string, string] => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw new CallkeyError('usage', `--var ${pair}: specify a name and a value, such as --var orderNumber=4711.`);
    return [name, value];
  });
  const variables = Object.fromEntries(entries);
  if (Object.keys(variables).length < entries.length) throw new CallkeyError('usage', '--var: specify each variable only once.');
  return variables;
}

function omitUndefined<Fields extends object>(fields: Fields): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Returns the option for a field: `contact.timeZone` is --time-zone. */
function toFlag(path: string): string {
  if (path.startsWith('variables')) return `--var ${path.slice('variables.'.length)}`.trim();
  return `--${path.replace('contact.', '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function withAdvice(error: CallkeyError, { call: { requestId }, adopted }: Recorded): CallkeyError {
  const what = error.isUnsent && !adopted ? "The call wasn't sent." : 'The call may or may not have been placed.';
  return new CallkeyError(
    'unreachable',
    `${error.message} ${what} Run the same command again: it sends the same request ID (${requestId}), so it won't place a second call.`,
    { code: error.code, cause: error },
  );
}

function formatResult(
  { options }: Context,
  { requestId, contactId, campaignId, placedAt, heldUntil, replayed }: PlacedCall,
  phone: string,
): string {
  const what = replayed ? `This call to ${phone} was already placed at ${placedAt}.` : `Placed a call to ${phone}.`;
  const cancel = shellCommand(options, 'call', 'cancel', campaignId, '--request-id', requestId);
  const held = heldUntil === undefined ? '' : `\nCalling hours: the call won't be dialed before ${heldUntil}.`;
  return `${what}${held}\nRequest ID: ${requestId}\nContact ID: ${contactId}\nCancel it with: ${cancel}`;
}
