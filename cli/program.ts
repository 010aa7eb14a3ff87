import { Command } from 'commander';
import { addCallCommands, campaignArgument } from './commands/call/call-program.ts';
import { shells } from './commands/completion.ts';
import type { KeySetOptions } from './commands/key/key-set.ts';
import type { McpOptions } from './commands/mcp/mcp.ts';
import { environmentHelp, examples, exitCodesHelp, type RunAction } from './terminal/help-text.ts';
import { numberOption } from './terminal/number-option.ts';

/**
 * Defines all commands. Each action is imported only when it runs, so that help and completion don't load other libraries. Completion may
 * run on every press of Tab.
 */
export function createProgram(version: string, runAction: RunAction): Command {
  const program = new Command('callkey')
    .description(
      'Place and cancel on-demand calls, one at a time or from a file. Repeating a command after a failure never places a second call.',
    )
    .version(version)
    .option('--profile <name>', 'name of the stored key and server to use (default: "default")')
    .option('--server <url>', 'address of the server: https, or http on this machine')
    .option('--state <dir>', 'folder for the record of placed calls (set it if your home folder is read-only)')
    .option(
      '--timeout <seconds>',
      'maximum duration of each attempt, including the response (default: 10)',
      numberOption({ min: 0.1, max: 3_600 }),
    )
    .option('--json', 'print only JSON on standard output, and errors as JSON on standard error')
    .option('--verbose', 'print requests and responses to standard error, without the key')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      examples('callkey key set --server https://calls.example.com', 'callkey call place CAMPAIGN --phone +493012345678') +
        exitCodesHelp +
        environmentHelp,
    );
  addKeyCommands(program.command('key').description('manage the API key used to place calls'), runAction);
  addCallCommands(program.command('call').description('place and cancel calls'), runAction);
  addCampaignCommands(program.command('campaign').description('manage aliases for campaign IDs'), runAction);
  program
    .command('doctor')
    .argument(...campaignArgument)
    .description('check the server, certificate, clock, key and campaign, without placing a call')
    .addHelpText('after', examples('callkey doctor', 'callkey doctor CAMPAIGN'))
    .action((campaign: string | undefined) =>
      runAction(async (context) => (await import('./commands/doctor/doctor.ts')).doctor(context, campaign)),
    );
  addMcp(program, runAction);
  addPrinters(program, runAction);
  return program;
}

function addKeyCommands(key: Command, runAction: RunAction): void {
  key
    .command('set')
    .argument('[words...]')
    .usage('[options]')
    .option('--insecure-storage', "store the key in a file that only you can read, instead of in the system's keychain")
    .description('store a key and its server; reads the key from a hidden prompt or from standard input')
    .addHelpText('after', examples('callkey key set --server https://calls.example.com', 'callkey key set --profile staging < key.txt'))
    .action((words: string[], options: KeySetOptions) =>
      runAction(async (context) => (await import('./commands/key/key-set.ts')).keySet(context, words, options)),
    );
  key
    .command('status')
    .description('show which key the next command uses and where it is stored, but never the key itself')
    .action(() => runAction(async (context) => (await import('./commands/key/key-status.ts')).keyStatus(context)));
  key
    .command('forget')
    .description('delete the stored key from this machine (it keeps working until you revoke it in the console)')
    .action(() => runAction(async (context) => (await import('./commands/key/key-forget.ts')).keyForget(context)));
}

function addCampaignCommands(campaign: Command, runAction: RunAction): void {
  campaign
    .command('alias')
    .argument('<name>', 'alias for the campaign')
    .argument('<campaign>', 'campaign ID')
    .description('create an alias that every command accepts instead of the campaign ID')
    .addHelpText('after', examples('callkey campaign alias reminders CAMPAIGN', 'callkey call place reminders --phone +493012345678'))
    .action((name: string, id: string) =>
      runAction(async (context) => (await import('./commands/campaign/campaign.ts')).campaignAlias(context, name, id)),
    );
  campaign
    .command('list')
    .description('list aliases')
    .action(() => runAction(async (context) => (await import('./commands/campaign/campaign.ts')).campaignList(context)));
  campaign
    .command('forget')
    .argument('<name>', 'alias to remove')
    .description('remove an alias, without changing the campaign')
    .action((name: string) =>
      runAction(async (context) => (await import('./commands/campaign/campaign.ts')).campaignForget(context, name)),
    );
}

function addMcp(program: Command, runAction: RunAction): void {
  program
    .command('mcp')
    .option('--campaign <campaign>', 'campaign ID or alias (default: CALLKEY_CAMPAIGN)')
    .option('--allow <prefix>', 'prefix of the allowed phone numbers, such as +49 (repeatable; default: all)', collect)
    .option(
      '--max-calls <n>',
      'the maximum number of different calls that an agent can place in a session',
      numberOption({ min: 1, max: 1_000, isWhole: true }),
      10,
    )
    .description('let an AI agent place and cancel calls, over the Model Context Protocol')
    .addHelpText('after', examples('callkey mcp --campaign reminders --allow +49 --max-calls 10'))
    .action((options: McpOptions) => runAction(async (context) => (await import('./commands/mcp/mcp.ts')).mcp(context, options)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function addPrinters(program: Command, runAction: RunAction): void {
  program
    .command('completion')
    .argument('<shell>', shells.join(', '))
    .description('print a shell completion script')
    .addHelpText(
      'after',
      examples('source <(callkey completion bash)', 'callkey completion fish > ~/.config/fish/completions/callkey.fish'),
    )
    .action((shell: string) =>
      runAction(async (context) => (await import('./commands/completion.ts')).completion(context, program, shell)),
    );
  // Completion scripts run this command, and pass the command line so far as `words`. If it contains --profile or --state, these options
  // apply.
  program
    .command('complete', { hidden: true })
    .helpOption(false)
    .argument('<kind>')
    .argument('[words...]')
    .allowUnknownOption()
    .action((kind: string) => runAction(async (context) => (await import('./commands/complete.ts')).complete(context, kind)));
  program
    .command('man')
    .description('print the manual page')
    .addHelpText('after', examples('callkey man | man -l -'))
    .action(() => runAction(async (context) => (await import('./commands/man/man.ts')).man(context, program)));
}
