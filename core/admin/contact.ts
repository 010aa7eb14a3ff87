import type { Command } from 'commander';
import { z } from 'zod';
import { timestamp } from '#contract/text.ts';
import { eraseContact, exportContact } from '../domain/contacts.ts';
import type { ContactCall } from '../domain/model.ts';
import type { AdminContext, Runner } from './context.ts';
import { withExamples } from './help.ts';
import { parseInput } from './input.ts';
import { shortName, table } from './table.ts';

export function contactCommands(program: Command, { withDatabase }: Runner): void {
  const contact = program.command('contact').description('people who were called, or are to be, by their phone number');
  const exported = contact.command('export').argument('<phone>').description('show all that is known of them; with --json, every field');
  withExamples(exported, 'contact export +493012345678', '--json contact export +493012345678').action(withDatabase(runExport));
  const erase = contact
    .command('erase')
    .argument('<phone>')
    .description('cancel their queued calls, and erase number, name, zone, variables and detail of all their calls');
  withExamples(erase, 'contact erase +493012345678').action(withDatabase(runErase));
}

/** Not by the rules for a new call: a number that no plan has any more must still be found. */
const phoneSchema = z
  .string()
  .transform((text) => text.replace(/[\s().-]/g, ''))
  .refine((text) => /^\+[1-9]\d{1,14}$/.test(text), { error: 'Give a number with its country code, such as +493012345678.' });

async function runExport({ ports, actor, output }: AdminContext, phone: string): Promise<void> {
  const calls = await exportContact(ports, actor, parseInput(phoneSchema, phone, 'PHONE'));
  const text = table(
    ['PLACED', 'CAMPAIGN', 'REQUEST ID', 'STATE', 'NAME'],
    calls.map((call) => [timestamp(call.placedAt), shortName(call.campaignName), call.requestId, call.state, shortName(call.name ?? '')]),
  );
  output.answer({ calls: calls.map(callJson) }, text);
}

function callJson({ notBefore, notAfter, placedAt, dialedAt, endedAt, ...call }: ContactCall) {
  return {
    ...call,
    notBefore: notBefore && timestamp(notBefore),
    notAfter: notAfter && timestamp(notAfter),
    placedAt: timestamp(placedAt),
    dialedAt: dialedAt && timestamp(dialedAt),
    endedAt: endedAt && timestamp(endedAt),
  };
}

/** @returns whether nothing is left */
async function runErase({ ports, actor, output }: AdminContext, phone: string): Promise<boolean> {
  const { erased, cancelled, dialing } = await eraseContact(ports, actor, parseInput(phoneSchema, phone, 'PHONE'));
  const lines = [`Erased ${erased} calls, of which ${cancelled} were not dialed yet and are cancelled.`];
  if (dialing > 0) lines.push(`${dialing} calls are being dialed and keep their data: run this again when they have ended.`);
  lines.push('Backups, the provider and the integrator keep what they have.');
  output.answer({ erased, cancelled, dialing }, lines.join('\n'));
  return dialing === 0;
}
