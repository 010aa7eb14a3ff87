import { Command } from 'commander';
import { addCancel } from './commands/call-cancel.ts';
import { addPlace } from './commands/call-place.ts';
import { addResume, addRuns } from './commands/call-runs.ts';
import { addCampaign } from './commands/campaign.ts';
import { addCompletion } from './commands/completion.ts';
import { addDoctor } from './commands/doctor.ts';
import { addKey } from './commands/key.ts';
import { addMan } from './commands/man.ts';
import { addMcp } from './commands/mcp.ts';
import type { WithContext } from './connection/context.ts';
import { environmentHelp, examples, exitCodesHelp, numberOption } from './terminal/help.ts';

/**
 * Defines all commands. Each file in commands/ has a command's options, its help and what it does. What only that needs is imported when it
 * runs, so that help and completion don't wait for other libraries: completion may run on every press of Tab.
 */
export function createProgram(version: string, withContext: WithContext): Command {
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
  addKey(program, withContext);
  const call = program.command('call').description('place and cancel calls');
  for (const add of [addPlace, addResume, addRuns, addCancel]) add(call, withContext);
  for (const add of [addCampaign, addDoctor, addMcp, addCompletion, addMan]) add(program, withContext);
  return program;
}
