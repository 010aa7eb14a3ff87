import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { freePort } from '../../scripts/support/postgres.ts';
import { bareEnvironment, type Ended, spawnScript } from '../support/commands.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';

describe('checking a provider adapter', () => {
  const env = { ...bareEnvironment, DIALER_SECRETS: signingSecret };
  const check = (args: string[], secrets = signingSecret) =>
    spawnScript('scripts/provider-check.ts', args, { env: { DIALER_SECRETS: secrets } });
  const wrong = ({ stdout }: Ended) => stdout.match(/(?<=^FAIL {3})[^:]+/gm) ?? [];

  it('reports nothing missing in the example from the documentation', async () => {
    const [port, corePort] = [await freePort(10_000), await freePort(10_000)];
    const args = ['scripts/adapter.ts', String(port), `http://127.0.0.1:${corePort}`];
    const receiver = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(createInterface({ input: receiver.stdout }), 'line');
    // Clients that hang up early or send too much data don't stop the receiver.
    const stranger = connect(port, '127.0.0.1');
    stranger.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na');
    await once(stranger.resume(), 'close');
    const talker = connect(port, '127.0.0.1');
    talker.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n${'a'.repeat(1_000_001)}`);
    expect(String(await once(talker, 'data'))).to.match(/^HTTP\/1\.1 401 /);
    talker.destroy();
    const ended = await check([`http://127.0.0.1:${port}/`, '--port', String(corePort)]);
    receiver.kill('SIGKILL');
    await once(receiver, 'exit');
    expect([ended.code, wrong(ended)], ended.stdout).to.deep.equal([0, []]);
    expect(ended.stdout.match(/^ok /gm)).to.have.length(11);
  });

  it('says in plain words which parts are missing, such as signatures or outcomes', async () => {
    const receiver = await startReceiver();
    const ended = await check([receiver.url, '--port', '0', '--wait', '0.1']);
    await receiver.close();
    expect(ended.code).to.equal(1);
    expect(wrong(ended)).to.deep.equal([
      'A hand-off with a wrong signature gets a 401',
      'A hand-off signed ten minutes ago gets a 401',
      'The outcome of the repeated hand-off is reported',
      'The outcome of the hand-off with every field is reported',
    ]);
    expect(receiver.received.at(-1)?.handoff.contact).to.include({ timeZone: 'Europe/Berlin' });
  });

  it("says why an adapter can't be reached, and what is wrong with the arguments", async () => {
    const ended = await check([`http://127.0.0.1:${await freePort()}/`, '--port', '0']);
    expect([ended.code, ended.stdout.includes('FAIL   The adapter is reachable: connection refused')]).to.deep.equal([1, true]);
    for (const [args, secrets, text] of [
      [[], signingSecret, 'Specify the URL'],
      [['http://127.0.0.1/'], 'secret', 'Set DIALER_SECRETS'],
      [['http://127.0.0.1/', '--phone', '911'], signingSecret, 'Invalid --phone: Must be'],
    ] as const) {
      const { code, stderr } = await check([...args], secrets);
      expect([code, stderr.includes(text)], stderr).to.deep.equal([2, true]);
    }
  });
});
