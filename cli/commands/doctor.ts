import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { describeOutdatedNode } from '#contract/node-release.ts';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Context, WithContext } from '../connection/context.ts';
import { campaignArgument, examples } from '../terminal/help.ts';
import { toFailure } from '../terminal/output.ts';

export function addDoctor(program: Command, withContext: WithContext): void {
  program
    .command('doctor')
    .argument(...campaignArgument)
    .description('check the server, certificate, clock, key and campaign, without placing a call')
    .addHelpText('after', examples('callkey doctor', 'callkey doctor CAMPAIGN'))
    .action((campaign: string | undefined) => withContext((context) => runDoctor(context, campaign)));
}

type Check = { check: string; ok: boolean; detail: string };
type Checklist = { checks: Check[]; pass(check: string, detail: string): void; fail(check: string, error: CallkeyError): void };

/**
 * Checks everything that placing a call needs, without placing one. The last failed check determines the exit code: the key is checked
 * after the clock, because a refused key matters more than a wrong clock.
 */
async function runDoctor(context: Context, campaign: string | undefined): Promise<void> {
  const checks: Check[] = [];
  let failure: CallkeyError | undefined;
  const list: Checklist = {
    checks,
    pass: (check, detail) => checks.push({ check, ok: true, detail }),
    fail(check, error) {
      checks.push({ check, ok: false, detail: error.message });
      failure = error;
    },
  };
  list.pass('version', await formatVersion(context));
  await examine(context, campaign, list).catch((error: unknown) => {
    if (!(error instanceof CallkeyError)) throw error;
    list.fail('settings', error);
  });
  const text = checks.map(({ check, ok, detail }) => `${ok ? 'ok  ' : 'FAIL'}  ${check.padEnd(11)}  ${detail}`).join('\n');
  const { code, page } = failure ? toFailure(failure) : {};
  const wrong = checks.filter(({ ok }) => !ok).length;
  const next = [
    wrong > 1 ? 'Fix the first problem first: the others may come from it.' : [],
    page === undefined ? [] : `See ${page}`,
  ].flat();
  context.output.answer({ ok: failure === undefined, ...(code && { code }), checks }, [text, ...next].join('\n'));
  if (failure) context.endWith(failure);
}

async function formatVersion(context: Context): Promise<string> {
  const newer = await newerVersion(context);
  const outdated = describeOutdatedNode(process.versions.node);
  const hints = [newer === undefined ? [] : `callkey ${newer} is available`, outdated ?? []].flat();
  return [`callkey ${context.version}, Node.js ${process.versions.node}`, ...hints].join('; ');
}

/** @throws CallkeyError if the settings are invalid */
async function examine(context: Context, campaign: string | undefined, list: Checklist): Promise<void> {
  const isGiven = campaign !== undefined || Boolean(context.environment['CALLKEY_CAMPAIGN']);
  const campaignId = isGiven ? await context.campaignId(campaign) : undefined;
  let serverTime: string | undefined;
  const onAnswer = ({ date }: { date: string | undefined }) => {
    serverTime = date;
  };
  const { server, client } = await context.connect({ retry: { attempts: 1 }, onAnswer });
  const probeError = await probe(client, campaignId ?? 'none').finally(() => client.close());

  // Checks codes, not statuses, since a different server may return 404 for everything.
  const isAccepted = probeError.code === 'call-not-found' || probeError.code === 'campaign-refused';
  if (!isAccepted && probeError.code !== 'unauthorized') {
    list.fail('server', probeError);
    return;
  }
  list.pass('server', `${server} is responding`);
  list.pass('connection', server.startsWith('https:') ? 'https, with a trusted certificate' : 'http, on this machine');
  checkClock(serverTime, list);
  if (!isAccepted) {
    list.fail('key', probeError);
    return;
  }
  list.pass('key', 'accepted');
  if (campaignId === undefined) list.pass('campaign', 'not checked: no campaign specified');
  else if (probeError.code === 'campaign-refused') list.fail('campaign', probeError);
  else list.pass('campaign', `the key has access to ${campaignId}`);
}

/**
 * Cancels a call that doesn't exist. The response distinguishes a refused key from a refused campaign, and nothing is placed or read.
 *
 * @returns the expected error, whose code is `campaign-refused` or `call-not-found` if the key is accepted
 */
async function probe(client: CallkeyClient, campaignId: string): Promise<CallkeyError> {
  try {
    await client.cancel(campaignId, { requestId: `doctor-${randomUUID()}` });
  } catch (error) {
    if (error instanceof CallkeyError) return error;
    throw error;
  }
  return new CallkeyError('failed', 'The server reported that it cancelled a call that never existed. Check the server address.');
}

/** If the clocks differ by more, notBefore and notAfter mean different times on the two machines. */
const maxSkew = 60_000;

/** Compares the clocks. @param serverTime the Date header, in whole seconds */
function checkClock(serverTime: string | undefined, { pass, fail }: Checklist): void {
  const skew = Date.now() - Date.parse(serverTime ?? '');
  const text = `this machine's clock is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} the server's`;
  if (Number.isNaN(skew)) pass('clock', "not checked: the server didn't send its time");
  else if (Math.abs(skew) <= 2_000) pass('clock', "this machine's clock matches the server's");
  else if (Math.abs(skew) <= maxSkew) pass('clock', text);
  else {
    const advice = "Check both clocks, because the times you specify for calls are compared with the server's clock.";
    fail('clock', new CallkeyError('failed', `${text}. ${advice}`, { code: 'clock' }));
  }
}

const packageName = '@callkey/cli';

/** Returns a newer published version, only with CALLKEY_UPDATE_NOTICE=on, never in CI. Asks npm, which knows the user's registry. */
async function newerVersion({ environment, version }: Pick<Context, 'environment' | 'version'>): Promise<string | undefined> {
  if (environment['CALLKEY_UPDATE_NOTICE'] !== 'on' || environment['CI']) return undefined;
  try {
    // On Windows, only a shell finds npm.cmd. This is safe, because no part of the command comes from outside.
    const { stdout } = await promisify(execFile)('npm', ['view', packageName, 'version'], {
      timeout: 10_000,
      shell: process.platform === 'win32',
    });
    const published = stdout.trim();
    return /^\d+\.\d+\.\d+$/.test(published) && published.localeCompare(version, 'en', { numeric: true }) > 0 ? published : undefined;
  } catch {
    // A failed check must not fail the command.
    return undefined;
  }
}
