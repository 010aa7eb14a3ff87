import type { Command } from 'commander';
import { CallkeyError } from '../client/errors.ts';
import type { Context } from '../context.ts';

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const;
type Shell = (typeof shells)[number];

/** The words that can follow a command. */
type Place = {
  /** The command's words, such as `call place`; empty for the program itself. */
  words: string;
  commands: { name: string; description: string }[];
  options: { flag: string; description: string; takes: 'nothing' | 'file' | 'text' }[];
};

/** Prints a shell's completion script, which is generated from the commands so that it always matches them. */
export async function completion({ output }: Context, program: Command, shell: string): Promise<void> {
  const shellName = shells.find((name) => name === shell);
  if (shellName === undefined) throw new CallkeyError('usage', `No completion script for "${shell}". Use one of ${shells.join(', ')}.`);
  const script = scripts[shellName](listPlaces(program));
  output.answer({ shell: shellName, script }, script);
}

function listPlaces(program: Command): Place[] {
  const help = program.createHelp();
  const place = (command: Command, words: string[]): Place[] => {
    const subcommands = help.visibleCommands(command).filter((sub) => sub.name() !== 'help');
    const all = [...help.visibleOptions(command), ...help.visibleOptions(program)];
    const options = [...new Map(all.map((option) => [option.long, option])).values()];
    const here: Place = {
      words: words.join(' '),
      commands: subcommands.map((sub) => ({ name: sub.name(), description: sub.description() })),
      options: options.flatMap(({ long, description, required }) =>
        long ? [{ flag: long, description, takes: long === '--from' ? 'file' : required ? 'text' : 'nothing' }] : [],
      ),
    };
    if (here.words === 'completion') here.commands = shells.map((name) => ({ name, description: '' }));
    return [here, ...subcommands.flatMap((sub) => place(sub, [...words, sub.name()]))];
  };
  return place(program, []);
}

const scripts: Record<Shell, (places: Place[]) => string> = { bash, zsh, fish, powershell };

function bash(places: Place[]): string {
  const values = (takes: string) => flags(places, takes).join('|');
  return `# bash completion for callkey. Load it with: source <(callkey completion bash)
_callkey() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} place='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$place $word" in
      ${steps(places)}) place="$place $word" ;;
    esac
  done
  case "$previous" in
    ${values('file')}) COMPREPLY=(); compopt -o filenames; while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current"); return ;;
    ${values('text')}) COMPREPLY=(); return ;;
  esac
  case "$place" in
${places.map((place) => `    '${lead(place)}') words='${candidates(place).join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -F _callkey callkey`;
}

function zsh(places: Place[]): string {
  const described = ({ commands, options }: Place) =>
    [...commands.map(({ name, description }) => [name, description]), ...options.map(({ flag, description }) => [flag, description])]
      .map(([word = '', description = '']) => quoted(`${word}:${description}`))
      .join(' ');
  return `#compdef callkey
# zsh completion for callkey. Load it with: source <(callkey completion zsh)
_callkey() {
  local place='' word
  local -a choices
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
${places.map((place) => `    '${lead(place)}') choices=(${described(place)}) ;;`).join('\n')}
  esac
  _describe callkey choices
}
if [ "$funcstack[1]" = _callkey ]; then _callkey "$@"; else compdef _callkey callkey; fi`;
}

function fish(places: Place[]): string {
  const lines = places.flatMap((place) => {
    const when = `-n ${quoted(`__callkey_at ${quoted(place.words)}`)}`;
    const commands = place.commands.map(
      ({ name, description }) => `complete -c callkey ${when} -a ${quoted(name)} -d ${quoted(description)}`,
    );
    const options = place.options.map(
      ({ flag, description, takes }) =>
        `complete -c callkey ${when} -l ${flag.slice(2)} ${takes === 'nothing' ? '' : takes === 'file' ? '-r -F ' : '-x '}-d ${quoted(description)}`,
    );
    return [...commands, ...options];
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

/** PowerShell passes the words up to the cursor as a syntax tree; `$word` is the part of the last one typed so far. */
function powershell(places: Place[]): string {
  const table = places.map((place) => {
    const choices = [
      ...place.commands.map(({ name, description }) => ({ word: name, description })),
      ...place.options.map(({ flag, description }) => ({ word: flag, description })),
    ];
    return `    '${place.words}' = @(${choices.map(({ word, description }) => `@(${doubled(word)}, ${doubled(description || word)})`).join(', ')})`;
  });
  return `# PowerShell completion for callkey. Load it with: callkey completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName callkey -ScriptBlock {
  param($word, $tree, $cursor)
  $choices = @{
${table.join('\n')}
  }
  $before = @($tree.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.ToString() })
  if ($before.Count -gt 0 -and @(${flags(places, 'file').map(doubled).join(', ')}, ${flags(places, 'text').map(doubled).join(', ')}) -contains $before[-1]) { return }
  $place = ''
  foreach ($next in $before | Select-Object -Skip 1) {
    $longer = "$place $next".Trim()
    if ($choices.ContainsKey($longer)) { $place = $longer }
  }
  $choices[$place] | Where-Object { $_[0] -like "$word*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}`;
}

/** Quotes a text for PowerShell: single quotes prevent expansion, and a quote inside is doubled. */
function doubled(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Builds a shell pattern that matches the commands, each with a leading space. */
function steps(places: Place[]): string {
  return places
    .filter(({ words }) => words !== '')
    .map((place) => `'${lead(place)}'`)
    .join('|');
}

function lead({ words }: Place): string {
  return words === '' ? '' : ` ${words}`;
}

function candidates({ commands, options }: Place): string[] {
  return [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)];
}

function flags(places: Place[], takes: string): string[] {
  return [...new Set(places.flatMap(({ options }) => options.filter((option) => option.takes === takes).map(({ flag }) => flag)))];
}

/** Quotes a text: sh-like shells and fish don't expand anything inside single quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
