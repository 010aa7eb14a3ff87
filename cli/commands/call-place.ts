import { type Command, Option } from 'commander';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { PlacedCall } from '../client/types.ts';
import type { Context, WithContext } from '../connection/context.ts';
import type { RecordedCall } from '../state/single-calls.ts';
import { addPaceOptions, campaignArgument, collect, examples, type PaceOptions, shellCommand, toPace } from '../terminal/help.ts';

type CallOptions = {
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
type PlaceOptions = CallOptions & PaceOptions & { from?: string; skipInvalid?: boolean; again?: boolean; columns?: string };

const oneCallOptions = ['phone', 'name', 'timeZone', 'var', 'notBefore', 'notAfter', 'requestId'];

export function addPlace(call: Command, withContext: WithContext): void {
  const place = call
    .command('place')
    .argument(...campaignArgument)
    .option('--phone <number>', 'phone number, such as +493012345678')
    .option('--name <name>', "the contact's name")
    .option('--time-zone <zone>', "the contact's time zone, such as Europe/Berlin")
    .option('--var <name=value>', 'variable for the conversation (repeatable)', collect)
    .option('--not-before <time>', 'earliest time to dial, such as 2026-11-21T09:00:00Z, or a local time with --zone')
    .option('--not-after <time>', 'latest time to dial')
    .option('--zone <zone>', 'time zone (such as Europe/Berlin) of local times (such as 2026-11-21T10:00)')
    .option('--request-id <id>', 'your own ID for this call (default: random)')
    .option('--dry-run', 'show what would be placed and what would be skipped, without sending anything')
    .addOption(
      new Option('--from <file>', 'place one call per line of a CSV or NDJSON file (- for standard input)').conflicts(oneCallOptions),
    )
    .option('--columns <pairs>', 'with --from: map CSV columns, such as phone=Mobile,name=Customer')
    .option('--country <code>', 'country, such as DE, for phone numbers without a country code')
    .option('--skip-invalid', 'with --from: skip invalid lines and place the others (default: place nothing if any line is invalid)')
    .option('--again', 'with --from: place every line again, even if it was already placed, or finish a stopped run');
  addPaceOptions(place, 'with --from: ')
    .description('place one call, or one per line of a file')
    .addHelpText(
      'after',
      `${examples(
        'callkey call place CAMPAIGN --phone +493012345678 --var orderNumber=4711',
        'callkey call place CAMPAIGN --from contacts.csv --dry-run',
        'callkey call place CAMPAIGN --from contacts.csv --rate 20 > results.ndjson',
      )}\nCSV columns: phone, name, timeZone, requestId, notBefore, notAfter,\n  and var.NAME for variables.`,
    )
    .action((campaign: string | undefined, { from, ...options }: PlaceOptions) =>
      withContext((context) => (from === undefined ? placeOne(context, campaign, options) : placeFrom(context, campaign, from, options))),
    );
}

async function placeFrom(context: Context, campaign: string | undefined, from: string, options: Omit<PlaceOptions, 'from'>): Promise<void> {
  const { skipInvalid = false, again = false, dryRun = false, columns, country, zone } = options;
  const { parseColumns, parseCountry, parseZone } = await import('../batch/reading.ts');
  const reading = {
    columns: columns === undefined ? {} : parseColumns(columns),
    country: country === undefined ? null : parseCountry(country),
    zone: zone === undefined ? null : parseZone(zone),
  };
  const { placeFile } = await import('../batch/place-file.ts');
  const campaignId = await context.campaignId(campaign);
  await placeFile(context, campaignId, from, { pace: toPace(options), skipInvalid, again, dryRun, reading });
}

/** Places one call. Writes its request ID to disk before sending it, so that the same command sends the same ID after a crash. */
async function placeOne(context: Context, campaign: string | undefined, options: Omit<PlaceOptions, 'from'>): Promise<void> {
  const { columns, concurrency, rate, skipInvalid, again } = options;
  if ([columns, concurrency, rate, skipInvalid, again].some((option) => option !== undefined))
    throw usageError('--columns, --concurrency, --rate, --skip-invalid and --again work only with --from FILE. Add it, or remove them.');
  const campaignId = await context.campaignId(campaign);
  const call = await toCall(options);
  if (options.dryRun) {
    context.output.answer(
      { status: 'would-place', campaignId, ...call },
      `Would place a call to ${call.contact.phone} if the do-not-call lists and calling hours allow it. Only the server can check these. Nothing was sent.`,
    );
    return;
  }
  let inDoubt = false;
  const note = context.retryNotes();
  const onRetry = (reason: string) => {
    inDoubt = true;
    note(reason);
  };
  const { server, client } = await context.connect({ retry: { onRetry } });
  const { recordCall } = await import('../state/single-calls.ts');
  try {
    const recorded = await recordCall(context, server, campaignId, call);
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

async function toCall(options: CallOptions): Promise<PlaceCall> {
  const { phone, name, timeZone, country, zone, var: pairs = [], requestId } = options;
  if (phone === undefined) throw usageError('Specify a phone number (--phone +493012345678) or a file of calls (--from FILE).');
  const { parseCountry, parseZone, toUtc, validateCall } = await import('../batch/reading.ts');
  const parsedZone = zone === undefined ? null : parseZone(zone);
  const readTime = (option: string, text: string | undefined) => {
    if (text === undefined) return undefined;
    const utc = toUtc(text, parsedZone);
    if ('time' in utc) return utc.time;
    throw usageError(`${option} ${text}: ${utc.reason}`);
  };
  const input = {
    requestId: requestId?.trim(),
    contact: omitUndefined({ phone, name, timeZone }),
    notBefore: readTime('--not-before', options.notBefore),
    notAfter: readTime('--not-after', options.notAfter),
    variables: pairs.length === 0 ? undefined : parseVariables(pairs),
  };
  const validated = validateCall(omitUndefined(input), country === undefined ? undefined : parseCountry(country));
  if (validated.ok) return validated.data;
  throw usageError(validated.errors.map(({ path, message }) => `${toFlag(path)}: ${message}`).join('\n'));
}

function parseVariables(pairs: readonly string[]): Record<string, string> {
  const entries = pairs.map((pair): [string, string] => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw usageError(`--var ${pair}: specify a name and a value, such as --var orderNumber=4711.`);
    return [name, value];
  });
  const variables = Object.fromEntries(entries);
  if (Object.keys(variables).length < entries.length) throw usageError('--var: specify each variable only once.');
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

function withAdvice(error: CallkeyError, { call: { requestId }, adopted }: RecordedCall): CallkeyError {
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
