import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { expect } from 'chai';
import { z } from 'zod';
import { sharedIntegrator } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

const answerSchema = z.object({ id: z.number(), result: z.looseObject({}) });

describe('callkey mcp', () => {
  const its = sharedIntegrator();

  const mcp = (...more: string[]) => ['mcp', '--campaign', its.tenants.campaign.id, ...more];

  /** Starts the command in this process. */
  async function startAgent(...more: string[]) {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const ended = its.home.runHere(mcp(...more), undefined, { stdin, stdout });
    return { ...(await talk(stdin, stdout)), ended };
  }

  /** Opens a session, as an agent does. */
  async function talk(stdin: Writable, stdout: Readable) {
    const answers = new Map<number, (result: Record<string, unknown>) => void>();
    createInterface({ input: stdout }).on('line', (line) => {
      const { id, result } = answerSchema.parse(JSON.parse(line));
      answers.get(id)?.(result);
    });
    let id = 0;
    const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const ask = (method: string, params: object): Promise<Record<string, unknown>> => {
      const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
      answers.set(++id, resolve);
      send({ id, method, params });
      return promise;
    };
    await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
    send({ method: 'notifications/initialized' });
    const call = (name: string, args: object) => ask('tools/call', { name, arguments: args });
    return { ask, call, leave: () => stdin.end() };
  }
  const callsTo = (phone: string) => its.direct.storage.database.read('calls').where({ phone });
  const getText = (result: Record<string, unknown>) => JSON.stringify(result['content']);

  it('offers two tools, of which placing a call has effects in the real world, and is possible ten times unless the user says otherwise', async () => {
    const agent = await startAgent();
    const { tools } = z
      .object({
        tools: z.array(z.object({ name: z.string(), description: z.string(), annotations: z.unknown(), inputSchema: z.looseObject({}) })),
      })
      .parse(await agent.ask('tools/list', {}));
    expect(tools.map(({ name }) => name)).to.deep.equal(['place_call', 'cancel_call']);
    expect(tools[0]?.annotations).to.deep.include({ destructiveHint: true, idempotentHint: true, openWorldHint: true });
    expect(tools[0]?.description).to.contain('At most 10 different calls');
    expect(tools[0]?.inputSchema['required']).to.have.members(['requestId', 'contact']);
    agent.leave();
    await agent.ended;
  });

  it('places a call once, cancels it, and never reveals an outcome', async () => {
    const agent = await startAgent();
    const phone = somePhone();
    const place = () => agent.call('place_call', { requestId: 'agent-1', contact: { phone } });
    expect(getText(await place())).to.contain('queued');
    expect(getText(await place())).to.contain('queued');
    expect(await callsTo(phone)).to.have.length(1);
    expect(getText(await agent.call('cancel_call', { requestId: 'agent-1' }))).to.contain('cancelled');
    expect(await agent.call('cancel_call', { requestId: 'agent-none' })).to.have.property('isError', true);
    agent.leave();
    expect((await agent.ended).code).to.equal(0);
  });

  it("refuses unknown arguments, a missing request ID, numbers that aren't allowed and calls above the limit, and sends nothing", async () => {
    const agent = await startAgent('--allow', '+49', '--max-calls', '1');
    const contact = { phone: '+493012345678' };
    for (const args of [
      { requestId: 'agent-2', contact, not_before: '2099-01-01T00:00:00.000Z' },
      { requestId: 'agent-2', contact: { ...contact, time_zone: 'Europe/Berlin' } },
      { contact },
      { requestId: 'agent-2', contact: { phone: '+12025550143' } },
      { requestId: 'agent-2', contact: { phone: '12' } },
    ])
      expect(await agent.call('place_call', args), JSON.stringify(args)).to.have.property('isError', true);
    expect(its.network.seen).to.deep.equal([]);
    expect(await agent.call('place_call', { requestId: 'agent-2', contact })).not.to.have.property('isError');
    const [second, repeated] = await Promise.all([
      agent.call('place_call', { requestId: 'agent-3', contact }),
      agent.call('place_call', { requestId: 'agent-2', contact }),
    ]);
    expect([second['isError'], repeated['isError']]).to.deep.equal([true, undefined]);
    expect(getText(second)).to.contain('its limit');
    // Although this request ID was sent before.
    const other = await agent.call('place_call', { requestId: 'agent-2', contact: { phone: '+12025550143' } });
    expect(getText(other)).to.contain("isn't allowed here");
    expect(its.network.seen).to.have.length(2);
    agent.leave();
    await agent.ended;
  });

  it('finishes a call in flight when the agent disconnects', async () => {
    const agent = await startAgent();
    const phone = somePhone();
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    void agent.call('place_call', { requestId: 'agent-4', contact: { phone } });
    await until(() => its.network.seen.length === 1);
    await once(agent.leave(), 'close');
    held.resolve();
    const { code, stderr } = await agent.ended;
    expect([code, stderr]).to.deep.equal([0, 'The agent disconnected. Finishing 1 request.\n']);
    expect(await callsTo(phone)).to.have.length(1);
  });

  it('responds to a call in flight after SIGTERM, refuses new ones, and exits with 0', async () => {
    const process = its.home.start(mcp(), { keepOpen: true });
    const { stdin, stdout } = process.child;
    if (!stdin || !stdout) throw new Error('The process has no pipes.');
    const agent = await talk(stdin, stdout);
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const first = agent.call('place_call', { requestId: 'agent-6', contact: { phone: somePhone() } });
    await until(() => its.network.seen.length === 1);
    process.child.kill('SIGTERM');
    await process.printed(/^Finishing 1 request\.$/m);
    const late = await agent.call('place_call', { requestId: 'agent-7', contact: { phone: somePhone() } });
    expect(late).to.have.property('isError', true);
    expect(getText(late)).to.contain('is stopping');
    held.resolve();
    expect(getText(await first)).to.contain('queued');
    expect(await process.ended).to.include({ code: 0, signal: null });
    expect(its.network.seen).to.have.length(1);
  });

  it('checks its options before it starts', async () => {
    for (const [more, says] of [
      [['--allow', '49'], /--allow 49/],
      [['--max-calls', '0'], /whole number from 1/],
    ] as const) {
      const { code, stderr } = await its.home.run(['mcp', '--campaign', 'x', ...more]);
      expect(code).to.equal(2);
      expect(stderr).to.match(says);
    }
    expect((await its.home.run(['mcp'])).code).to.equal(2);
  });
});
