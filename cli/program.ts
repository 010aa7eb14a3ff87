import { Command, InvalidArgumentError, Option } from 'commander';
import { CallkeyError } from './client/errors.ts';
import type { CancelOptions } from './commands/call-cancel.ts';
import type { CallOptions } from './commands/call-place.ts';
import { shells } from './commands/completion.ts';
import type { KeySetOptions } from './commands/key-set.ts';
import type { Context } from './context.ts';

type Action = (context: Context) => Promise<void>;
/** Runs a command's action with its context. */
type RunAction = (work: Action) => Promise<void>;
type PaceOptions = { concurrency: number; rate?: number };
type PlaceOptions = CallOptions & PaceOptions & { from?: string; skipInvalid?: boolean; again?: boolean };

const exitCodesHelp = `
Exit codes: 0 done · 2 wrong usage or input · 3 key refused · 4 campaign refused · 5 too late, or a conflict · 6 not found
            7 unreachable or overloaded · 1 anything else`;

const environmentHelp = `
Environment: CALLKEY_API_KEY (instead of a stored key, for CI), CALLKEY_SERVER, CALLKEY_PROFILE, NO_COLOR`;

/** All commands. Each action is imported when it runs: the help, which completion may need at every Tab, loads no other library. */
export function createProgram(version: string, runAction: RunAction): Command {
  const program = new Command('callkey')
    .description('Places and cancels on-demand calls, one or a whole file, and never one of them twice.')
    .version(version)
    .option('--profile <name>', 'which stored key and server to use (default: "default")')
    .option('--server <url>', 'address of the core: https, or http on this machine')
    .option('--json', 'answer in JSON, with nothing else on standard output')
    .option('--verbose', 'show requests and answers on standard error, without the key')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      examples('callkey key set --server https://calls.example.com', 'callkey call place CAMPAIGN --phone +493012345678') +
        exitCodesHelp +
        environmentHelp,
    );
  addKeyCommands(program.command('key').description('the API key that calls are placed with'), runAction);
  addCallCommands(program.command('call').description('place and cancel calls'), runAction);
  program
    .command('completion')
    .argument('<shell>', shells.join(', '))
    .description('print the completion script of a shell')
    .addHelpText(
      'after',
      examples('source <(callkey completion bash)', 'callkey completion fish > ~/.config/fish/completions/callkey.fish'),
    )
    .action((shell: string) =>
      runAction(async (context) => (await import('./commands/completion.ts')).completion(context, program, shell)),
    );
  return program;
}

function addKeyCommands(key: Command, runAction: RunAction): void {
  key
    .command('set')
    .argument('[words...]')
    .usage('[options]')
    .option('--insecure-storage', "keep the key in a file that only you can read, instead of the system's keychain")
    .description('store a key and its server; reads the key from a hidden prompt or from standard input')
    .addHelpText('after', examples('callkey key set --server https://calls.example.com', 'callkey key set --profile staging < key.txt'))
    .action((words: string[], options: KeySetOptions) =>
      runAction(async (context) => (await import('./commands/key-set.ts')).keySet(context, words, options)),
    );
  key
    .command('status')
    .description('show which key the next command uses and where it is stored, never the key itself')
    .action(() => runAction(async (context) => (await import('./commands/key-status.ts')).keyStatus(context)));
  key
    .command('forget')
    .description('delete the stored key from this machine (it works until you revoke it in the console)')
    .action(() => runAction(async (context) => (await import('./commands/key-forget.ts')).keyForget(context)));
}

function addCallCommands(call: Command, runAction: RunAction): void {
  addPlace(call, runAction);
  addPaceOptions(call.command('resume').argument('[run]', 'the run to resume, where several were stopped'))
    .description('continue a file that was stopped; places no line twice')
    .addHelpText('after', examples('callkey call resume'))
    .action((name: string | undefined, pace: PaceOptions) =>
      runAction(async (context) => (await import('./commands/call-resume.ts')).callResume(context, name, paceOf(pace))),
    );
  call
    .command('cancel')
    .argument('<campaign>', "the campaign's id")
    .option('--contact <id>', 'its contact id, from the answer to placing it')
    .option('--request-id <id>', 'its request id')
    .option('--last', 'the last call to this campaign from this machine')
    .description('cancel a call before it is dialed')
    .addHelpText('after', examples('callkey call cancel CAMPAIGN --last', 'callkey call cancel CAMPAIGN --request-id order-4711'))
    .action((campaign: string, options: CancelOptions) =>
      runAction(async (context) => (await import('./commands/call-cancel.ts')).callCancel(context, campaign, options)),
    );
}

const oneCallOptions = ['phone', 'name', 'timeZone', 'var', 'notBefore', 'notAfter', 'requestId'];

function addPlace(call: Command, runAction: RunAction): void {
  const place = call
    .command('place')
    .argument('<campaign>', "the campaign's id")
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
    .addOption(
      new Option('--from <file>', 'place a call for each line of a CSV or NDJSON file; - is standard input').conflicts(oneCallOptions),
    )
    .option('--skip-invalid', 'with --from: skip wrong lines instead of sending nothing')
    .option('--again', 'with --from: place every line once more, even where it was placed before');
  addPaceOptions(place, 'with --from: ')
    .description('place a call, or one for each line of a file')
    .addHelpText(
      'after',
      `${examples(
        'callkey call place CAMPAIGN --phone +493012345678 --name "Ada Lovelace" --var orderNumber=4711',
        'callkey call place CAMPAIGN --from contacts.csv --rate 20 > results.ndjson',
      )}\nColumns of a CSV file: phone, name, timeZone, requestId, notBefore, notAfter, and var.NAME for a variable.`,
    )
    .action((campaign: string, options: PlaceOptions) => runAction((context) => callPlaceAny(context, campaign, options)));
}

async function callPlaceAny(
  context: Context,
  campaign: string,
  { from, skipInvalid = false, again = false, ...rest }: PlaceOptions,
): Promise<void> {
  if (from === undefined && (skipInvalid || again))
    throw new CallkeyError('usage', '--skip-invalid and --again work with --from FILE only. Add it, or leave them out.');
  if (from === undefined) return (await import('./commands/call-place.ts')).callPlace(context, campaign, rest);
  const { callPlaceFile } = await import('./commands/call-place-file.ts');
  return callPlaceFile(context, campaign, from, { ...paceOf(rest), skipInvalid, again });
}

function addPaceOptions(command: Command, when = ''): Command {
  return command
    .option('--concurrency <n>', `${when}how many requests run at once`, wholeNumberUpTo(256), 8)
    .option('--rate <n>', `${when}how many calls to place a second, at most`, positive);
}

function paceOf({ concurrency, rate }: PaceOptions) {
  return { concurrency, rate };
}

function wholeNumberUpTo(most: number) {
  return (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= 1 && number <= most) return number;
    throw new InvalidArgumentError(`Give a whole number from 1 to ${most}.`);
  };
}

function positive(text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isFinite(number)) return number;
  throw new InvalidArgumentError('Give a number greater than 0.');
}

function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}
