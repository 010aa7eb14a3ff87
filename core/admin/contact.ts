import type { Command } from 'commander';
import { z } from 'zod';
import { readPhone } from '#contract/calls/phone.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { timestamp, toPlainPhone } from '#contract/text/text.ts';
import { eraseContact, exportContact, forgetDoNotCall } from '../domain/calls/contacts.ts';
import type { ContactCall } from '../domain/ports.ts';
import { type AdminContext, parseInput, type Runner, shortName, table, withExamples } from './command-line.ts';
import { entryJson } from './do-not-call.ts';

export function contactCommands(program: Command, { withDatabase }: Runner): void {
  const contact = program.command('contact').description('export or erase data about a phone number');
  const exported = contact
    .command('export <phone>')
    .description('show everything stored about a phone number; --json includes every field');
  withExamples(exported, 'contact export +493012345678', '--json contact export +493012345678').action(withDatabase(runExport));
  const erase = contact
    .command('erase <phone>')
    .description(
      'cancel queued calls to a phone number, and erase the number, name, time zone, variables and detail from all of its calls',
    );
  erase.option('--do-not-call', 'also delete the number from all do-not-call lists, so that it can be called again');
  withExamples(erase, 'contact erase +493012345678').action(withDatabase(runErase));
}

/**
 * Accepts any phone number, because one that's no longer in a numbering plan must still be found. A plus sign and digits stay as they are:
 * converting them would change +4903012345678, for example, and a call to exactly that number may have been placed.
 */
const phoneSchema = z
  .string()
  .transform((text) => {
    const written = toPlainPhone(text);
    const read = /^\+\d+$/.test(written) ? { phone: written } : readPhone(text, { country: undefined, accept: 'possible' });
    return 'phone' in read ? read.phone : written.replace(/[ ().-]/g, '');
  })
  .refine((text) => /^\+[1-9]\d{1,14}$/.test(text), { error: 'Must be a phone number with its country code, such as +493012345678.' });

async function runExport({ ports, caller: { actor }, output }: AdminContext, phone: string): Promise<void> {
  const { calls, entries } = await exportContact(ports, actor, parseInput(phoneSchema, phone, 'PHONE'));
  const text = table(
    ['PLACED', 'CAMPAIGN', 'REQUEST ID', 'STATE', 'NAME'],
    calls.map((call) => [timestamp(call.placedAt), shortName(call.campaignName), call.requestId, call.state, shortName(call.name ?? '')]),
  );
  const lists = table(
    ['LISTED', 'DO NOT CALL FOR', 'REASON', 'NOTE'],
    entries.map(({ createdAt, scope, reason, note }) => [timestamp(createdAt), shortName(scope.name), reason, shortName(note ?? '')]),
  );
  const json = { calls: calls.map(callJson), doNotCallEntries: entries.map(entryJson) };
  output.answer(json, entries.length === 0 ? text : `${text}\n\n${lists}`);
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

async function runErase(
  { ports, caller: { actor }, output }: AdminContext,
  phoneOrId: string,
  options: { doNotCall?: true },
): Promise<boolean> {
  const phone = parseInput(phoneSchema, phoneOrId, 'PHONE');
  const { erased, cancelled, dialing } = await eraseContact(ports, actor, phone);
  const lines = [`Erased contact data from ${counted(erased, 'call')}, and cancelled ${cancelled} of them before they were dialed.`];
  if (dialing > 0) lines.push(`Not erased, because dialing is in progress: ${counted(dialing, 'call')}. Run this command again later.`);
  lines.push("Data in backups, at the provider and in the integrator's systems wasn't erased.");
  const entries = options.doNotCall && (await forgetDoNotCall(ports, actor, phone));
  lines.push(
    entries === undefined
      ? 'Any do-not-call entries were kept, to prevent further calls. To delete them as well, pass --do-not-call.'
      : `Deleted from do-not-call lists: ${formatCount(entries)}. The number can be called again.`,
  );
  output.answer({ erased, cancelled, dialing, doNotCallEntries: entries }, lines.join('\n'));
  return dialing === 0;
}
