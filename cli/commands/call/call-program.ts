import { type Command, Option } from 'commander';
import { CallkeyError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { examples, type RunAction } from '../../terminal/help-text.ts';
import { numberOption } from '../../terminal/number-option.ts';
import type { CancelOptions } from './call-cancel.ts';
import type { CallOptions } from './call-place.ts';

type PaceOptions = { concurrency?: number; rate?: number };
type FileOnlyOptions = { skipInvalid?: boolean; again?: boolean; columns?: string };
type CancelAnyOptions = CancelOptions & PaceOptions & { columns?: string };
type PlaceOptions = CallOptions & PaceOptions & FileOnlyOptions & { from?: string; dryRun?: boolean };

export const campaignArgument = ['[campaign]', 'campaign ID or alias (default: CALLKEY_CAMPAIGN)'] as const;

export function addCallCommands(call: Command, runAction: RunAction): void {
  addPlace(call, runAction);
  addPaceOptions(call.command('resume').argument('[run]', 'run to resume, if several were stopped'))
    .description('resume a stopped run, without placing any line twice')
    .addHelpText('after', examples('callkey call resume'))
    .action((name: string | undefined, pace: PaceOptions) =>
      runAction(async (context) => (await import('./call-resume.ts')).callResume(context, name, toPace(pace))),
    );
  addRuns(call, runAction);
  addCancel(call, runAction);
}

function addCancel(call: Command, runAction: RunAction): void {
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
    .action((campaign: string | undefined, options: CancelAnyOptions) => runAction((context) => callCancelAny(context, campaign, options)));
}

async function callCancelAny(context: Context, campaign: string | undefined, options: CancelAnyOptions): Promise<void> {
  const { run, from, columns, contact, requestId, last, ...pace } = options;
  if (columns !== undefined && from === undefined)
    throw new CallkeyError('usage', '--columns works only with --from FILE. Add it, or remove --columns.');
  const named = [run, from, contact, requestId, last].filter((option) => option !== undefined);
  if (named.length === 1 && run !== undefined) {
    const { callCancelRun } = await import('./call-cancel-batch.ts');
    return callCancelRun(context, campaign === undefined ? undefined : await findCampaignId(context, campaign), run, toPace(pace));
  }
  if (named.length === 1 && from !== undefined) {
    const [{ callCancelFile }, { parseColumns, plainReading }] = await Promise.all([
      import('./call-cancel-batch.ts'),
      import('../../batch/file/reading.ts'),
    ]);
    const reading = { ...plainReading, columns: columns === undefined ? {} : parseColumns(columns) };
    return callCancelFile(context, await findCampaignId(context, campaign), from, { pace: toPace(pace), reading });
  }
  const { callCancel } = await import('./call-cancel.ts');
  return callCancel(context, await findCampaignId(context, campaign), options);
}

function addRuns(call: Command, runAction: RunAction): void {
  const runs = call
    .command('runs')
    .description('list the files placed from this machine')
    .addHelpText('after', examples('callkey call runs', 'callkey call runs discard 5f3a9c01'))
    .action(() => runAction(async (context) => (await import('./call-runs.ts')).callRuns(context)));
  runs
    .command('discard')
    .argument('<run...>', 'runs to discard')
    .description("discard runs so that resume no longer offers them; their calls aren't cancelled")
    .addHelpText('after', examples('callkey call runs discard 5f3a9c01'))
    .action((names: string[]) => runAction(async (context) => (await import('./call-runs.ts')).callRunsDiscard(context, names)));
}

const oneCallOptions = ['phone', 'name', 'timeZone', 'var', 'notBefore', 'notAfter', 'requestId'];

function addPlace(call: Command, runAction: RunAction): void {
  const place = call
    .command('place')
    .argument(...campaignArgument)
    .option('--phone <number>', 'phone number, such as +493012345678')
    .option('--name <name>', "the contact's name")
    .option('--time-zone <zone>', "the contact's time zone, such as Europe/Berlin")
    .option('--var <name=value>', 'variable for the conversation (repeatable)', (pair: string, before: string[] = []) => [...before, pair])
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
    .action((campaign: string | undefined, options: PlaceOptions) => runAction((context) => callPlaceAny(context, campaign, options)));
}

async function callPlaceAny(context: Context, campaign: string | undefined, { from, ...options }: PlaceOptions): Promise<void> {
  const { skipInvalid = false, again = false, columns, country, zone, dryRun = false, ...call } = options;
  if (from === undefined) {
    const forFiles = [columns, call.concurrency, call.rate, skipInvalid || undefined, again || undefined];
    if (forFiles.some((option) => option !== undefined))
      throw new CallkeyError(
        'usage',
        '--columns, --concurrency, --rate, --skip-invalid and --again work only with --from FILE. Add it, or remove them.',
      );
    const { callPlace } = await import('./call-place.ts');
    const reading = { ...(country === undefined ? {} : { country }), ...(zone === undefined ? {} : { zone }) };
    return callPlace(context, await findCampaignId(context, campaign), { ...call, ...reading, dryRun });
  }
  const [{ parseColumns, parseCountry }, { parseZone }] = await Promise.all([
    import('../../batch/file/reading.ts'),
    import('../../terminal/local-time.ts'),
  ]);
  const reading = {
    columns: columns === undefined ? {} : parseColumns(columns),
    country: country === undefined ? null : parseCountry(country),
    zone: zone === undefined ? null : parseZone(zone),
  };
  const { callPlaceFile } = await import('./call-place-file.ts');
  return callPlaceFile(context, await findCampaignId(context, campaign), from, { ...toPace(call), skipInvalid, again, dryRun, reading });
}

async function findCampaignId(context: Context, campaign: string | undefined): Promise<string> {
  return (await import('../campaign/campaigns.ts')).resolveCampaign(context, campaign);
}

/** With a lower rate, delays would be longer than a timer supports, and Node.js wouldn't wait at all. */
const minRate = 0.001;

function addPaceOptions(command: Command, when = '', what = 'place'): Command {
  return command
    .option(
      '--concurrency <n>',
      `${when}maximum number of concurrent requests (default: 8)`,
      numberOption({ min: 1, max: 256, isWhole: true }),
    )
    .option('--rate <n>', `${when}maximum number of calls to ${what} per second`, numberOption({ min: minRate }));
}

function toPace({ concurrency = 8, rate }: PaceOptions) {
  return { concurrency, rate };
}
