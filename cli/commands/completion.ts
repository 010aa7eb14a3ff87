import type { Command } from 'commander';
import { quoted } from '#contract/text/shell.ts';
import { usageError } from '../client/errors.ts';
import type { Context, WithContext } from '../connection/context.ts';
import { examples } from '../terminal/help.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** The kinds of values that a shell can complete, besides commands, options and files. */
const valueKinds = ['campaigns', 'profiles', 'runs'] as const;
type ValueKind = (typeof valueKinds)[number];

type ValueType = 'nothing' | 'file' | 'text' | ValueKind;

/** Options and arguments whose values are known. */
const values: Readonly<Record<string, ValueType>> = {
  '--from': 'file',
  '--profile': 'profiles',
  '--run': 'runs',
  '--campaign': 'campaigns',
  campaign: 'campaigns',
  run: 'runs',
};

type Choice = { word: string; description: string };

/** The words that can follow a command. */
type Place = {
  /** The command's words, such as `call place`; empty for the program itself. */
  words: string;
  commands: Choice[];
  options: (Choice & { takes: ValueType })[];
  /** The kind of value that its argument takes. */
  argument: ValueKind | undefined;
};

export function addCompletion(program: Command, withContext: WithContext): void {
  program
    .command('completion')
    .argument('<shell>', shells.join(', '))
    .description('print a shell completion script')
    .addHelpText(
      'after',
      examples('source <(callkey completion bash)', 'callkey completion fish > ~/.config/fish/completions/callkey.fish'),
    )
    .action((shell: string) => withContext(async (context) => printScript(context, program, shell)));
  // Completion scripts run this command, and pass the command line so far as `words`. If it has --profile or --state, they apply.
  program
    .command('complete', { hidden: true })
    .helpOption(false)
    .argument('<kind>')
    .argument('[words...]')
    .allowUnknownOption()
    .action((kind: string) => withContext((context) => complete(context, kind)));
}

/** Prints a shell's completion script, which is generated from the commands so that it always matches them. */
function printScript({ output }: Context, program: Command, shell: string): void {
  const shellName = shells.find((name) => name === shell);
  if (shellName === undefined) throw usageError(`No completion script for "${shell}". Use one of ${shells.join(', ')}.`);
  const script = scripts[shellName](listPlaces(program));
  output.answer({ shell: shellName, script }, script);
}

const readers: Record<ValueKind, (context: Context) => Promise<string[]>> = {
  campaigns: async (context) => [...(await (await import('../connection/settings.ts')).readAliases(context)).keys()],
  profiles: async ({ folders }) => [...(await (await import('../connection/settings.ts')).readProfiles(folders)).keys()],
  async runs({ folders }) {
    const { readRuns, runName } = await import('../batch/run-journal.ts');
    return (await readRuns(folders)).map(runName);
  },
};

/** Other names come only from a file that callkey didn't write, and a shell would interpret them: bash runs `$(…)` in suggestions. */
const shellSafe = /^[\w.-]+$/;

/** Prints values for a completion script, one per line. Prints nothing if they can't be read, because a user is in the middle of typing. */
async function complete(context: Context, kind: string): Promise<void> {
  const known = valueKinds.find((name) => name === kind);
  const values = known ? await readers[known](context).catch(() => []) : [];
  for (const value of values.filter((text) => shellSafe.test(text))) context.streams.stdout.write(`${value}\n`);
}

function listPlaces(program: Command): Place[] {
  const help = program.createHelp();
  const place = (command: Command, words: string[]): Place[] => {
    const subcommands = help.visibleCommands(command).filter((sub) => sub.name() !== 'help');
    const all = [...help.visibleOptions(command), ...help.visibleOptions(program)];
    const options = [...new Map(all.map((option) => [option.long, option])).values()];
    const here: Place = {
      words: words.join(' '),
      commands: subcommands.map((sub) => ({ word: sub.name(), description: sub.description() })),
      options: options.flatMap(({ long, description, required }) =>
        long ? [{ word: long, description, takes: required ? (values[long] ?? 'text') : 'nothing' }] : [],
      ),
      argument: expectedArgument(command, words),
    };
    if (here.words === 'completion') here.commands = shells.map((word) => ({ word, description: '' }));
    return [here, ...subcommands.flatMap((sub) => place(sub, [...words, sub.name()]))];
  };
  return place(program, []);
}

/** @returns undefined if the value of the command's first argument isn't known */
function expectedArgument(command: Command, words: string[]): ValueKind | undefined {
  const name = command.registeredArguments[0]?.name() ?? '';
  const kind = words.join(' ') === 'campaign forget' ? 'campaigns' : values[name];
  return valueKinds.find((valueKind) => valueKind === kind);
}

const scripts: Record<Shell, (places: Place[]) => string> = { bash, zsh, fish };

function bash(places: Place[]): string {
  const ofKind = (takes: ValueType) => flags(places, takes).join('|');
  const cases = kindsOfOptions(places).map((kind) => `    ${ofKind(kind)}) words='' kind=${kind} skip=1 ;;`);
  return `# bash completion for callkey. Load it with: source <(callkey completion bash)
_callkey() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} place='' words='' word kind='' skip=0
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${steps(places)}) place="$place $word" ;;
    esac
  done
  case "$previous" in
    ${ofKind('file')}) COMPREPLY=(); compopt -o filenames; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current"); return ;;
    ${ofKind('text')}) COMPREPLY=(); return ;;
  esac
  case "$place" in
${places.map((place) => `    '${placePrefix(place)}') words='${[...place.commands, ...place.options].map(({ word }) => word).join(' ')}' kind='${place.argument ?? ''}' ;;`).join('\n')}
  esac
  case "$previous" in
${cases.join('\n')}
  esac
  [ -z "$kind" ] || words="$words $("\${COMP_WORDS[0]}" complete "$kind" "\${COMP_WORDS[@]:1:COMP_CWORD-1-skip}" 2>/dev/null)"
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -F _callkey callkey`;
}

function zsh(places: Place[]): string {
  const described = ({ commands, options }: Place) =>
    [...commands, ...options].map(({ word, description }) => quoted(`${word}:${description}`)).join(' ');
  return `#compdef callkey
# zsh completion for callkey. Load it with: source <(callkey completion zsh)
_callkey() {
  local place='' word kind='' skip=0
  local -a choices values
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      ${steps(places).replaceAll('|', ' | ')}) place="$place $word" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
    ${flags(places, 'file').join(' | ')}) _files; return ;;
    ${flags(places, 'text').join(' | ')}) return ;;
  esac
  case "$place" in
${places.map((place) => `    '${placePrefix(place)}') choices=(${described(place)}) kind='${place.argument ?? ''}' ;;`).join('\n')}
  esac
  case "\${words[CURRENT-1]}" in
${kindsOfOptions(places)
  .map((kind) => `    ${flags(places, kind).join(' | ')}) choices=() kind=${kind} skip=1 ;;`)
  .join('\n')}
  esac
  [ -z "$kind" ] || values=("\${(@f)$("\${words[1]}" complete $kind "\${(@)words[2,CURRENT-1-skip]}" 2>/dev/null)}")
  [ -z "\${values[1]}" ] || compadd -a values
  [ \${#choices} -eq 0 ] || _describe callkey choices
}
if [ "$funcstack[1]" = _callkey ]; then _callkey "$@"; else compdef _callkey callkey; fi`;
}

function fish(places: Place[]): string {
  const lines = places.flatMap((place) => {
    const when = `-n ${quoted(`__callkey_at ${quoted(place.words)}`)}`;
    const commands = place.commands.map(
      ({ word, description }) => `complete -c callkey ${when} -a ${quoted(word)} -d ${quoted(description)}`,
    );
    const options = place.options.map(
      ({ word, description, takes }) => `complete -c callkey ${when} -l ${word.slice(2)} ${fishTakes(takes)}-d ${quoted(description)}`,
    );
    const argument = place.argument ? [`complete -c callkey ${when} ${fishValues(place.argument, -1)}`] : [];
    return [...commands, ...options, ...argument];
  });
  return `# fish completion for callkey. Load it with: callkey completion fish | source
function __callkey_at
  set -l place
  for word in (commandline -opc)[2..-1]
    set -l next $place $word
    contains -- "$next" ${places
      .filter(({ words }) => words !== '')
      .map(({ words }) => quoted(words))
      .join(' ')}; and set -a place $word
  end
  test "$place" = "$argv[1]"
end
complete -c callkey -f
${lines.join('\n')}`;
}

function fishTakes(takes: ValueType): string {
  if (takes === 'nothing') return '';
  if (takes === 'file') return '-r -F ';
  if (takes === 'text') return '-x ';
  return `-x ${fishValues(takes, -2)}`;
}

/** @param last the last word to pass on: -1 for all words before the cursor, -2 to omit the option whose value is being completed */
function fishValues(kind: ValueKind, last: number): string {
  return `-a '(set -l words (commandline -opc); $words[1] complete ${kind} $words[2..${last}] 2>/dev/null)' `;
}

/** Builds a shell pattern that matches the commands, each with a leading space. */
function steps(places: Place[]): string {
  return places
    .filter(({ words }) => words !== '')
    .map((place) => `'${placePrefix(place)}'`)
    .join('|');
}

function placePrefix({ words }: Place): string {
  return words === '' ? '' : ` ${words}`;
}

/** Returns the kinds of values that options take. */
function kindsOfOptions(places: Place[]): ValueKind[] {
  return valueKinds.filter((kind) => flags(places, kind).length > 0);
}

function flags(places: Place[], takes: ValueType): string[] {
  return [...new Set(places.flatMap(({ options }) => options.filter((option) => option.takes === takes).map(({ word }) => word)))];
}
