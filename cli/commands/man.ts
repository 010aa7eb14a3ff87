import type { Command } from 'commander';
import type { WithContext } from '../connection/context.ts';
import { environmentHelp, examples, exitCodesHelp } from '../terminal/help.ts';

export function addMan(program: Command, withContext: WithContext): void {
  program
    .command('man')
    .description('print the manual page')
    .addHelpText('after', examples('callkey man | man -l -'))
    .action(() =>
      withContext(async ({ output, version }) => {
        const page = manPage(program, version);
        output.answer({ page }, page);
      }),
    );
}

/** Builds the manual page in man(7) format: every command with its options, and what scripts need to know. */
export function manPage(program: Command, version: string): string {
  const lines = [
    `.TH CALLKEY 1 "" "callkey ${version}" "User Commands"`,
    '.SH NAME',
    `callkey \\- ${roff(program.description())}`,
    '.SH SYNOPSIS',
    roff(formatUsage(program)),
    '.SH COMMANDS',
    ...commandsBelow(program).flatMap((command) => [
      '.SS',
      roff(formatUsage(command)),
      roff(capitalized(command.description())),
      ...formatOptions(command),
    ]),
    '.SH OPTIONS',
    'These options work with every command.',
    ...formatOptions(program),
    '.SH ENVIRONMENT',
    ...preformatted(environmentHelp.replace('Environment:', '')),
    '.SH EXIT STATUS',
    ...preformatted(exitCodesHelp.replace('Exit codes:', '')),
    'Ctrl-C and SIGTERM terminate the command with that signal, but callkey mcp exits with 0.',
    '.SH FILES',
    '$XDG_CONFIG_HOME/callkey contains profiles and campaign aliases. $XDG_STATE_HOME/callkey, or the folder given with',
    '.BR \\-\\-state :',
    'contains a record of placed calls, without phone numbers or names.',
  ];
  return lines.join('\n');
}

function commandsBelow(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((sub) => sub.name() !== 'help').flatMap((sub) => [sub, ...commandsBelow(sub)]);
}

/** Returns a command's usage: `callkey call place [options] [campaign]`. */
function formatUsage(command: Command): string {
  return command.createHelp().commandUsage(command);
}

function formatOptions(command: Command): string[] {
  return command.options.flatMap(({ flags, description }) => ['.TP', `.B ${roff(flags)}`, roff(capitalized(description))]);
}

function preformatted(text: string): string[] {
  const lines = text.split(/ · |\n/).map((line) => roff(line.trim()));
  return ['.nf', ...lines.filter((line) => line !== ''), '.fi'];
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Escapes dashes, which would become hyphens that can't be copied, and dots and quotes that would start a roff request. */
function roff(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/gm, '\\&$&');
}
