import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { makeSigningSecret } from '#contract/calls/signature.ts';
import { type Runner, type Settings, withExamples } from './command-line.ts';

export function dialerCommands(program: Command, { withoutDatabase }: Runner): void {
  const dialer = program.command('dialer').description('manage the webhook that hands calls to your provider');
  const secret = dialer.command('secret').description('generate a secret for DIALER_SECRETS, without storing it');
  withExamples(secret, 'dialer secret').action(withoutDatabase(runSecret));
}

async function runSecret({ output }: Settings): Promise<void> {
  const secret = makeSigningSecret(randomBytes);
  output.answer({ secret }, secret);
}
