import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { McpServer } from '@modelcontextprotocol/server';
import type { Command } from 'commander';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { counted } from '#contract/text/count.ts';
import type { CallkeyClient } from '../client/callkey-client.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { Context, WithContext } from '../connection/context.ts';
import { collect, examples, numberOption } from '../terminal/help.ts';
import { interruptOnSignals } from '../terminal/interrupt.ts';

type McpOptions = { campaign?: string; allow?: readonly string[]; maxCalls: number };

export function addMcp(program: Command, withContext: WithContext): void {
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
    .action((options: McpOptions) => withContext((context) => serve(context, options)));
}

type Tools = { client: CallkeyClient; campaignId: string; allow: readonly string[]; maxCalls: number };
/** Keeps the session open until a request has finished. */
type Track = <Result>(send: () => Promise<Result>) => Promise<Result>;
type ToolResult = { content: { type: 'text'; text: string }[]; isError?: true };

/** Serves two tools to an agent (Model Context Protocol), until it disconnects. It can't read outcomes, because keys can't. */
async function serve(context: Context, { campaign, allow = [], maxCalls }: McpOptions): Promise<void> {
  const campaignId = await context.campaignId(campaign);
  const wrong = allow.find((prefix) => !/^\+[1-9]\d{0,14}$/.test(prefix));
  if (wrong !== undefined) throw usageError(`--allow ${wrong}: must be the beginning of a phone number, such as +49.`);
  const { client } = await context.connect({ connections: 4 });
  const stop = new AbortController();
  const inFlight = new Set<Promise<unknown>>();
  const track: Track = async (send) => {
    if (stop.signal.aborted)
      throw new CallkeyError('failed', 'callkey mcp is stopping, so nothing was sent. Start it again, then repeat this.');
    const work = send();
    inFlight.add(work);
    return work.finally(() => inFlight.delete(work));
  };
  const { McpServer } = await import('@modelcontextprotocol/server');
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const tools = await createTools({ client, campaignId, allow, maxCalls }, track);
  const { stdin, stdout } = context.streams;
  const transport = new StdioServerTransport(stdin, stdout);
  const served = serveStdio(() => tools.addTo(new McpServer({ name: 'callkey', version: context.version })), { transport });
  const interrupt = interruptOnSignals(stop, () => undefined);
  try {
    const left = once(stdin, 'close').catch(() => undefined);
    await Promise.race([left, once(stop.signal, 'abort')]);
    // An agent that disconnected won't see these results, but its calls are placed. Repeating them with the same request IDs is harmless.
    const reason = interrupt.signal() === undefined ? 'The agent disconnected. ' : '';
    if (inFlight.size > 0) context.output.note(`${reason}Finishing ${counted(inFlight.size, 'request')}.`);
    await Promise.allSettled(inFlight);
    // The results of these requests are written before the next turn.
    await nextTurn();
  } finally {
    interrupt.release();
    await served.close();
    await client.close();
  }
}

type IdentifiedCall = PlaceCall & { requestId: string };

async function createTools(tools: Tools, track: Track) {
  const [{ z }, { placeCallSchema, requestIdSchema }] = await Promise.all([import('zod'), import('#contract/calls/calls.ts')]);
  const hints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true };
  const placeTool = {
    title: 'Place a phone call',
    description: describePlacing(tools),
    // Unknown fields are refused. Otherwise, a misspelled notBefore would cause an immediate call.
    inputSchema: placeCallSchema.safeExtend({ requestId: requestIdSchema }),
    annotations: { ...hints, openWorldHint: true },
  };
  const cancelTool = {
    title: 'Cancel a phone call',
    description: "Cancels a call that hasn't been dialed, by the request ID that placed it. Safe to repeat.",
    inputSchema: z.strictObject({ requestId: requestIdSchema }),
    annotations: { ...hints, openWorldHint: false },
  };
  /** The request IDs sent in this session. Repeating one doesn't count, because it can't place a second call. */
  const sent = new Set<string>();
  const place = async (call: IdentifiedCall): Promise<ToolResult> => {
    const refusal = explainRefusal(call, sent, tools);
    if (refusal !== undefined) return failure(refusal);
    sent.add(call.requestId);
    return toResult(track(() => tools.client.place(tools.campaignId, call)));
  };
  const cancel = ({ requestId }: { requestId: string }) => toResult(track(() => tools.client.cancel(tools.campaignId, { requestId })));
  return {
    addTo(server: McpServer): McpServer {
      server.registerTool('place_call', placeTool, place);
      server.registerTool('cancel_call', cancelTool, cancel);
      return server;
    },
  };
}

function describePlacing({ allow, maxCalls }: Tools): string {
  const numbers = allow.length === 0 ? '' : ` Only numbers that begin with ${allow.join(' or ')} are allowed.`;
  return (
    `Has a voice agent call a person by phone, now or after notBefore. At most ${maxCalls} different calls in this session.${numbers} ` +
    'Derive requestId from the purpose of the call: repeating the same call with the same requestId never calls the person twice. ' +
    "The result says that the call is queued. There's no way to find out how it ended."
  );
}

function explainRefusal({ requestId, contact: { phone } }: IdentifiedCall, sent: ReadonlySet<string>, { allow, maxCalls }: Tools) {
  if (allow.length > 0 && !allow.some((prefix) => phone.startsWith(prefix)))
    return `${phone} isn't allowed here. Only numbers that begin with ${allow.join(' or ')} are. Nothing was sent.`;
  return sent.has(requestId) || sent.size < maxCalls
    ? undefined
    : `This session has placed ${counted(maxCalls, 'call')}, which is its limit. Nothing was sent. Ask the user to start a new session.`;
}

async function toResult(answer: Promise<object>): Promise<ToolResult> {
  try {
    return { content: [{ type: 'text', text: JSON.stringify(await answer) }] };
  } catch (error) {
    if (error instanceof CallkeyError) return failure(error.message);
    throw error;
  }
}

function failure(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}
