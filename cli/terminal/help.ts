import { type Command, InvalidArgumentError } from 'commander';
import { shellWord } from '#contract/text/shell.ts';

export const campaignArgument = ['[campaign]', 'campaign ID or alias (default: CALLKEY_CAMPAIGN)'] as const;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join('')}`;
}

export const exitCodesHelp = `
Exit codes:
  0 success                          4 campaign access denied
  1 any other error                  5 too late, or a conflict
  2 usage error or invalid input     6 not found
  3 key rejected                     7 unreachable or overloaded
  8 not callable: do-not-call list or calling hours`;

export const environmentHelp = `

Environment:
  CALLKEY_API_KEY       key to use instead of a stored one, for example in CI
  CALLKEY_API_KEY_FILE  file that contains the key
  CALLKEY_SERVER, CALLKEY_CAMPAIGN, CALLKEY_PROFILE, CALLKEY_UPDATE_NOTICE,
  HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, NO_COLOR`;

type Range = { min: number; max?: number; isWhole?: boolean };

/** Returns a parser for an option's number. */
export function numberOption({ min, max = Infinity, isWhole = false }: Range) {
  const kind = isWhole ? 'a whole number ' : '';
  return (text: string): number => {
    const number = Number(text);
    if (number >= min && number <= max && (isWhole ? Number.isInteger(number) : Number.isFinite(number))) return number;
    throw new InvalidArgumentError(max === Infinity ? `Must be ${min} or more.` : `Must be ${kind}from ${min} to ${max}.`);
  };
}

/** Parses an option that can be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

type ProfileOptions = { profile?: string | undefined; server?: string | undefined; state?: string | undefined };

/** In a checkout, npm runs callkey, which isn't on the PATH. */
function programWords(): string[] {
  return process.env['npm_lifecycle_event'] === 'callkey' ? ['npm', 'run', 'callkey', '--'] : ['callkey'];
}

/** Builds a command to copy into a shell, with this command's profile, server and state. Environment variables apply to it anyway. */
export function shellCommand({ profile, server, state }: ProfileOptions, ...words: string[]): string {
  const options = Object.entries({ profile, server, state }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return [...programWords(), ...words, ...options].map((word) => shellWord(word, process.platform === 'win32')).join(' ');
}

/** How fast a command sends the calls of a file. */
export type PaceOptions = { concurrency?: number; rate?: number };

const defaultConcurrency = 8;

/** With a lower rate, delays would be longer than a timer supports, and Node.js wouldn't wait at all. */
const minRate = 0.001;

export function addPaceOptions(command: Command, when = '', what = 'place'): Command {
  return command
    .option(
      '--concurrency <n>',
      `${when}maximum number of concurrent requests (default: ${defaultConcurrency})`,
      numberOption({ min: 1, max: 256, isWhole: true }),
    )
    .option('--rate <n>', `${when}maximum number of calls to ${what} per second`, numberOption({ min: minRate }));
}

export function toPace({ concurrency = defaultConcurrency, rate }: PaceOptions) {
  return { concurrency, rate };
}

/** Returns the options with which a suggested command sends calls at the same pace. Leaves out the default. */
export function paceWords({ concurrency, rate }: ReturnType<typeof toPace>): string[] {
  return [
    ...(concurrency === defaultConcurrency ? [] : ['--concurrency', String(concurrency)]),
    ...(rate === undefined ? [] : ['--rate', String(rate)]),
  ];
}
