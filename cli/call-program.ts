import { type Command, InvalidArgumentError, Option } from 'commander';
import { CallkeyError } from './client/errors.ts';
import type { CancelOptions } from './commands/call-cancel.ts';
import type { CallOptions } from './commands/call-place.ts';
import type { Context } from './context.ts';
import { examples, type RunAction } from './program-parts.ts';

type PaceOptions = { concurrency?: number; rate?: number };
type FileOnlyOptions = { skipInvalid?: boolean; again?: boolean; columns?: string; country?: string };
type PlaceOptions = CallOptions & PaceOptions & FileOnlyOptions & { from?: string; dryRun?: boolean };

export const campaignArgument = ['[campaign]', "the campaign's id or alias (default: CALLKEY_CAMPAIGN)"] as const;

export function addCallCommands(call: Command, runAction: RunAction): void {
  addPlace(call, runAction);
  addPaceOptions(call.command('resume').argument('[run]', 'the run to resume, where several were stopped'))
    .description('continue a file that was stopped; places no line twice')
    .addHelpText('after', examples('callkey call resume'))
    .action((name: string | undefined, pace: PaceOptions) =>
      runAction(async (context) => (await import('./commands/call-resume.ts')).callResume(context, name, paceOf(pace))),
    );
  addRuns(call, runAction);
  call
    .command('cancel')
    .argument(...campaignArgument)
    .option('--contact <id>', 'its contact id, from the answer to placing it')
    .option('--request-id <id>', 'its request id')
    .option('--last', 'the last call to this campaign from this machine')
    .description('cancel a call before it is dialed')
    .addHelpText('after', examples('callkey call cancel CAMPAIGN --last', 'callkey call cancel CAMPAIGN --request-id order-4711'))
    .action((campaign: string | undefined, options: CancelOptions) =>
      runAction(async (context) => {
        const { callCancel } = await import('./commands/call-cancel.ts');
        await callCancel(context, await campaignIdOf(context, campaign), options);
      }),
    );
}

function addRuns(call: Command, runAction: RunAction): void {
  const runs = call
    .command('runs')
    .description('list the files that were placed from this machine')
    .addHelpText('after', examples('callkey call runs', 'callkey call runs discard 5f3a9c01'))
    .action(() => runAction(async (context) => (await import('./commands/call-runs.ts')).callRuns(context)));
  runs
    .command('discard')
    .argument('<run...>', 'the runs to forget')
    .description('forget runs, so that resume does not offer them; their calls stay placed')
    .addHelpText('after', examples('callkey call runs discard 5f3a9c01'))
    .action((names: string[]) => runAction(async (context) => (await import('./commands/call-runs.ts')).callRunsDiscard(context, names)));
}

const oneCallOptions = ['phone', 'name', 'timeZone', 'var', 'notBefore', 'notAfter', 'requestId'];

function addPlace(call: Command, runAction: RunAction): void {
  const place = call
    .command('place')
    .argument(...campaignArgument)
    .option('--phone <number>', 'phone number, such as +493012345678')
    .option('--name <name>', "the contact's name")
    .option('--time-zone <zone>', "the contact's time zone, such as Europe/Berlin")
    .option('--var <name=value>', 'a variable for the conversation; repeat it for more', (pair: string, before: string[] = []) => [
      ...before,
      pair,
    ])
    .option('--not-before <instant>', 'dial no earlier, such as 2026-11-21T09:00:00.000Z')
    .option('--not-after <instant>', 'dial no later')
    .option('--request-id <id>', 'your own id for this call (default: a random one)')
    .option('--dry-run', 'send nothing, and say what would be placed and what skipped')
    .addOption(
      new Option('--from <file>', 'place a call for each line of a CSV or NDJSON file; - is standard input').conflicts(oneCallOptions),
    )
    .option('--columns <pairs>', 'with --from: which columns of a CSV file to take, such as phone=Mobile,name=Customer')
    .option('--country <code>', 'with --from: the country of phone numbers without one, such as DE')
    .option('--skip-invalid', 'with --from: skip wrong lines instead of sending nothing')
    .option('--again', 'with --from: place every line once more, even where it was placed before');
  addPaceOptions(place, 'with --from: ')
    .description('place a call, or one for each line of a file')
    .addHelpText(
      'after',
      `${examples(
        'callkey call place CAMPAIGN --phone +493012345678 --name "Ada Lovelace" --var orderNumber=4711',
        'callkey call place CAMPAIGN --from contacts.csv --dry-run',
        'callkey call place CAMPAIGN --from contacts.csv --rate 20 > results.ndjson',
      )}\nColumns of a CSV file: phone, name, timeZone, requestId, notBefore, notAfter, and var.NAME for a variable.`,
    )
    .action((campaign: string | undefined, options: PlaceOptions) => runAction((context) => callPlaceAny(context, campaign, options)));
}

async function callPlaceAny(context: Context, campaign: string | undefined, { from, ...options }: PlaceOptions): Promise<void> {
  const { skipInvalid = false, again = false, columns, country, dryRun = false, ...call } = options;
  if (from === undefined) {
    const forFiles = [columns, country, call.concurrency, call.rate, skipInvalid || undefined, again || undefined];
    if (forFiles.some((option) => option !== undefined))
      throw new CallkeyError(
        'usage',
        '--columns, --country, --concurrency, --rate, --skip-invalid and --again work with --from FILE only. Add it, or leave them out.',
      );
    const { callPlace } = await import('./commands/call-place.ts');
    return callPlace(context, await campaignIdOf(context, campaign), { ...call, dryRun });
  }
  const { parseColumns, parseCountry } = await import('./batch/reading.ts');
  const reading = {
    columns: columns === undefined ? {} : parseColumns(columns),
    country: country === undefined ? null : parseCountry(country),
  };
  const { callPlaceFile } = await import('./commands/call-place-file.ts');
  return callPlaceFile(context, await campaignIdOf(context, campaign), from, { ...paceOf(call), skipInvalid, again, dryRun, reading });
}

async function campaignIdOf(context: Context, campaign: string | undefined): Promise<string> {
  return (await import('./campaigns.ts')).campaignOf(context, campaign);
}

function addPaceOptions(command: Command, when = ''): Command {
  return command
    .option('--concurrency <n>', `${when}how many requests run at once (default: 8)`, wholeNumberUpTo(256))
    .option('--rate <n>', `${when}how many calls to place a second, at most`, rate);
}

function paceOf({ concurrency = 8, rate }: PaceOptions) {
  return { concurrency, rate };
}

function wholeNumberUpTo(most: number) {
  return (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= 1 && number <= most) return number;
    throw new InvalidArgumentError(`Give a whole number from 1 to ${most}.`);
  };
}

/** Between two calls of a lower one would be more than a timer can wait, and Node.js would not wait at all. */
const leastRate = 0.001;

function rate(text: string): number {
  const number = Number(text);
  if (number >= leastRate && Number.isFinite(number)) return number;
  throw new InvalidArgumentError(`Give a number of at least ${leastRate}.`);
}
