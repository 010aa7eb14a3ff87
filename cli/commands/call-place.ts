import { type PlaceCall, placeCallSchema } from '#contract/calls.ts';
import type { NamedCall, PlacedCall } from '../client/core-client.ts';
import { CallkeyError } from '../client/errors.ts';
import { oneCallPolicy } from '../client/retries.ts';
import { type Context, connect, tellRetries } from '../context.ts';
import { fieldErrors } from '../field-errors.ts';
import { checkedCampaign } from '../identifiers.ts';
import { noteLastCall, readLastCall } from '../last-call.ts';
import { beginCall } from '../pending-calls.ts';

export type CallOptions = {
  phone?: string;
  name?: string;
  timeZone?: string;
  var?: readonly string[];
  notBefore?: string;
  notAfter?: string;
  requestId?: string;
};

/** Places one call. Its request id is on the disk before it is sent, so that sending it again places no second one. */
export async function callPlace(context: Context, campaign: string, options: CallOptions): Promise<void> {
  const campaignId = checkedCampaign(campaign);
  const call = callOf(options);
  let inDoubt = false;
  const tell = tellRetries(context);
  const onRetry = (reason: string) => {
    inDoubt = true;
    tell(reason);
  };
  const { server, client } = await connect(context, { patience: { ...oneCallPolicy, onRetry } });
  try {
    const noted = await note(context, server, campaignId, call);
    inDoubt ||= noted.takenUp;
    const placed = await client.place(campaignId, noted.call).catch(async (error: unknown) => {
      if (!(error instanceof CallkeyError)) throw error;
      if (error.kind === 'unreachable') throw withAdvice(error, noted.call);
      // What was refused at its first and only try has placed nothing.
      if (!inDoubt && error.kind !== 'failed') await noted.undo();
      throw error;
    });
    await noted.settle();
    context.output.answer(placed, textOf(placed, call.contact.phone));
  } finally {
    await client.close();
  }
}

type Noted = { call: NamedCall; takenUp: boolean; settle(): Promise<void>; undo(): Promise<void> };

/** Puts on the disk what is about to be sent. */
async function note({ folders, output }: Context, server: string, campaignId: string, call: PlaceCall): Promise<Noted> {
  const pending = call.requestId === undefined ? await beginCall(folders, server, campaignId, call) : undefined;
  const requestId = call.requestId ?? pending?.requestId ?? '';
  if (pending?.takenUp) output.note(`This command ended before without an answer: its request id ${requestId} is sent again.`);
  const lastBefore = await readLastCall(folders, server, campaignId);
  await noteLastCall(folders, server, campaignId, { requestId });
  const settle = async () => pending?.settle();
  const undo = async () => {
    await settle();
    await noteLastCall(folders, server, campaignId, lastBefore);
  };
  return { call: { ...call, requestId }, takenUp: pending?.takenUp ?? false, settle, undo };
}

function callOf({ phone, name, timeZone, var: variables = [], requestId, notBefore, notAfter }: CallOptions): PlaceCall {
  if (phone === undefined) throw new CallkeyError('usage', 'Say whom to call: --phone +493012345678, or --from FILE for many.');
  const given = variables.length === 0 ? undefined : variablesOf(variables);
  const input = { requestId, contact: defined({ phone, name, timeZone }), variables: given, notBefore, notAfter };
  const parsed = placeCallSchema.safeParse(defined(input));
  if (parsed.success) return parsed.data;
  const complaints = fieldErrors(parsed.error).map(({ path, message }) => `${flagOf(path)}: ${message}`);
  throw new CallkeyError('usage', complaints.join('\n'));
}

function variablesOf(pairs: readonly string[]): Record<string, string> {
  const entries = pairs.map((pair): [string, string] => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw new CallkeyError('usage', `--var ${pair}: give a name and a value, as in --var orderNumber=4711.`);
    return [name, value];
  });
  const variables = Object.fromEntries(entries);
  if (Object.keys(variables).length < entries.length) throw new CallkeyError('usage', '--var: give each variable once.');
  return variables;
}

function defined<Fields extends object>(fields: Fields): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** `contact.timeZone` is --time-zone at the command line. */
function flagOf(path: string): string {
  if (path.startsWith('variables')) return `--var ${path.slice('variables.'.length)}`.trim();
  return `--${path.replace('contact.', '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function withAdvice(failure: CallkeyError, { requestId }: NamedCall): CallkeyError {
  return new CallkeyError(
    'unreachable',
    `${failure.message} Whether the call was placed is not known. Run the same command again: it sends the same request id (${requestId}), and places no second call.`,
    { code: failure.code, cause: failure },
  );
}

function textOf({ requestId, contactId, campaignId, placedAt, replayed }: PlacedCall, phone: string): string {
  const what = replayed ? `This call to ${phone} was placed already, at ${placedAt}.` : `Placed a call to ${phone}.`;
  return `${what}\nRequest id: ${requestId}\nContact id: ${contactId}\nCancel it with: callkey call cancel ${campaignId} --request-id ${requestId}`;
}
