import type { Command } from 'commander';
import type { ContactLimits, Pace, StopScope } from '#contract/protection/dialing.ts';
import { contactLimitsSchema, paceSchema, stopDialingSchema } from '#contract/protection/dialing.ts';
import { protectionScopes } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { timestamp } from '#contract/text/text.ts';
import { listStops, resumeDialing, stopDialing } from '../domain/calls/stops.ts';
import type { DialingStop } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { setContactLimits, setPace, showContactLimits, showPace } from '../domain/protection/rules.ts';
import { type AdminContext, exampleAccount, oneLine, parseInput, type Runner, table, toNumber, withExamples } from './command-line.ts';
import { findScope, type ScopeOptions, toReference, withScope } from './rules.ts';

type Options = ScopeOptions & { server?: boolean };

export function dialingCommands(program: Command, { withDatabase }: Runner): void {
  const dialing = program.command('dialing').description('stop and resume dialing, and set how fast calls leave the core');
  const stop = withStopScope(dialing.command('stop').description('stop dialing. Once this has finished, no call leaves any core'))
    .option('--reason <text>', 'why, for everyone whose calls are stopped')
    .option('--cancel-queued-calls', 'also cancel the queued calls');
  withExamples(stop, 'dialing stop --server', `dialing stop ${exampleAccount} --reason "Wrong recording"`).action(withDatabase(runStop));
  const resume = withStopScope(dialing.command('resume').description('resume dialing'));
  withExamples(resume, 'dialing resume --server').action(withDatabase(runResume));
  withExamples(dialing.command('list').description('list what is stopped'), 'dialing list').action(withDatabase(runList));
  const pace = withScope(dialing.command('pace').description('show or set how fast the calls of an account or campaign leave'), paced)
    .option('--per-second <n>', 'calls per second, from 0.1 to 1000; or "none"')
    .option('--live-calls <n>', 'calls that may be with the provider at the same time, from 1 to 100000; or "none"');
  withExamples(pace, `dialing pace ${exampleAccount} --per-second 1 --live-calls 20`).action(withDatabase(runPace));
}

function withStopScope(command: Command): Command {
  return withScope(command.option('--server', 'the whole server'));
}

async function findStopScope({ ports }: AdminContext, options: Options): Promise<{ scope: StopScope; id?: string; name: string }> {
  const chosen = (['server', ...protectionScopes] as const).filter((each) => options[each] !== undefined);
  if (chosen.length !== 1) throw new Problem('invalid', 'Specify exactly one of --server, --partner, --account, --campaign.');
  if (options.server) return { scope: 'server', name: 'the server' };
  const { kind, id, name } = await findScope(ports, options);
  return { scope: kind, id, name: `the ${kind} ${oneLine(name)}` };
}

async function runStop(context: AdminContext, options: Options & { reason?: string; cancelQueuedCalls?: boolean }): Promise<void> {
  const { ports, caller, output } = context;
  const { name, ...scope } = await findStopScope(context, options);
  const { reason, cancelQueuedCalls } = options;
  parseInput(stopDialingSchema.shape.reason, reason, '--reason');
  const { stop, queuedCalls, withProvider } = await stopDialing(ports, caller, { ...scope, reason, cancelQueuedCalls });
  const waiting = `${counted(queuedCalls, 'queued call')} waiting, ${counted(withProvider, 'call')} with the provider`;
  output.answer(
    { stop: stopJson(stop), queuedCalls, withProvider },
    `Dialing is stopped for ${name}${cancelQueuedCalls ? ', and its queued calls are cancelled' : ''}: ${waiting}.`,
  );
}

async function runResume(context: AdminContext, options: Options): Promise<void> {
  const { ports, caller, output } = context;
  const { name, scope, id } = await findStopScope(context, options);
  const stop = (await listStops(ports, caller.viewer)).find((each) => each.scope === scope && each.target?.id === id);
  if (!stop) throw new Problem('not-found', `Dialing isn't stopped for ${name}.`);
  await resumeDialing(ports, caller, stop.id);
  output.answer({ resumed: stopJson(stop) }, `Dialing is resumed for ${name}.`);
}

async function runList({ ports, caller, output }: AdminContext): Promise<void> {
  const stops = await listStops(ports, caller.viewer);
  const rows = stops.map(({ scope, target, at, by, reason }) => [
    scope,
    oneLine(target?.name ?? ''),
    timestamp(at),
    oneLine(by?.name ?? 'operator'),
    oneLine(reason ?? ''),
  ]);
  output.answer(
    { stops: stops.map(stopJson) },
    rows.length === 0 ? 'Nothing is stopped.' : table(['SCOPE', 'NAME', 'STOPPED', 'BY', 'REASON'], rows),
  );
}

function stopJson({ id, scope, target, at, by, reason }: DialingStop) {
  return { id, scope, target, at: timestamp(at), by, reason };
}

const paced = ['account', 'campaign'] as const;

async function runPace(context: AdminContext, options: ScopeOptions & { perSecond?: string; liveCalls?: string }): Promise<void> {
  const { ports, caller, output } = context;
  const scope = toReference(await findScope(ports, options, paced));
  const before = await showPace(ports, caller.viewer, scope);
  const change: Pace = {
    perSecond: readPace('perSecond', '--per-second', options.perSecond, before),
    liveCalls: readPace('liveCalls', '--live-calls', options.liveCalls, before),
  };
  const changes = options.perSecond !== undefined || options.liveCalls !== undefined;
  const { version, ...pace } = changes ? await setPace(ports, caller, scope, change) : before;
  output.answer({ pace }, `Calls per second: ${pace.perSecond ?? 'any number'}\nLive calls: ${pace.liveCalls ?? 'any number'}`);
}

function readPace(name: keyof Pace, option: string, text: string | undefined, before: Pace): number | null {
  if (text === undefined) return before[name];
  if (text === 'none') return null;
  const parsed = paceSchema.shape[name].safeParse(toNumber(text));
  if (parsed.success) return parsed.data;
  const messages = { perSecond: 'Must be a number from 0.1 to 1000', liveCalls: 'Must be a whole number from 1 to 100000' };
  throw new Problem('invalid', `${option}: ${messages[name]}, or none.`);
}

export function contactLimitsCommands(program: Command, { withDatabase }: Runner): void {
  const limits = program.command('contact-limits').description('manage how often one number may be called');
  const set = withScope(limits.command('set').description('set how often the calls of a partner, account or campaign may reach one number'))
    .option('--calls <n>', 'maximum number of calls to one number, from 1 to 100')
    .option('--days <n>', 'number of days in which these calls count, from 1 to 30')
    .option('--minutes-between <n>', 'minimum time between two calls to one number, in minutes, from 0 to 43200')
    .option('--none', 'remove the limits of this scope, so that those of its account or partner apply');
  withExamples(
    set,
    `contact-limits set ${exampleAccount} --calls 3 --days 1 --minutes-between 240`,
    `contact-limits set ${exampleAccount} --none`,
  ).action(withDatabase(runSetLimits));
  const list = withScope(limits.command('list').alias('show').description('show the limits of a partner, account or campaign'));
  withExamples(list, `contact-limits list ${exampleAccount}`).action(withDatabase(runListLimits));
}

type LimitOptions = ScopeOptions & { calls?: string; days?: string; minutesBetween?: string; none?: boolean };

async function runSetLimits(context: AdminContext, options: LimitOptions): Promise<void> {
  const { ports, caller } = context;
  const scope = toReference(await findScope(ports, options));
  const { calls, days, minutesBetween, none = false } = options;
  const values = [calls, days, minutesBetween];
  if (none ? values.some((value) => value !== undefined) : values.some((value) => value === undefined))
    throw new Problem('invalid', 'Specify --calls, --days and --minutes-between, or --none.');
  const { shape } = contactLimitsSchema;
  const limits = none
    ? null
    : {
        calls: parseInput(shape.calls, toNumber(calls ?? ''), '--calls'),
        days: parseInput(shape.days, toNumber(days ?? ''), '--days'),
        minutesBetween: parseInput(shape.minutesBetween, toNumber(minutesBetween ?? ''), '--minutes-between'),
      };
  await setContactLimits(ports, caller, scope, limits);
  await runListLimits(context, options);
}

async function runListLimits({ ports, caller, output }: AdminContext, options: ScopeOptions): Promise<void> {
  const { limits, effective } = await showContactLimits(ports, caller.viewer, toReference(await findScope(ports, options)));
  const inherited = limits === null && effective ? ` (from ${effective.from.kind} ${oneLine(effective.from.name)})` : '';
  output.answer(
    { limits, effective },
    effective ? `${describeLimits(effective.limits)}${inherited}` : 'No contact limits: a number may be called at any time.',
  );
}

function describeLimits({ calls, days, minutesBetween }: ContactLimits): string {
  return `At most ${counted(calls, 'call')} to one number in ${counted(days, 'day')}, at least ${counted(minutesBetween, 'minute')} apart`;
}
