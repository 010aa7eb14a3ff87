import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { cliMain } from '../../support/cli.ts';
import { sharedIntegrator, singleCalls } from '../../support/integrator.ts';
import { faultyProxy } from '../../support/proxies.ts';
import { skip } from '../../support/suites.ts';
import { somePhone } from '../../support/tenants.ts';
import { until } from '../../support/until.ts';

describe('callkey call place, when a request fails,', () => {
  const its = sharedIntegrator();
  const { place, placeHere, cancel, callsTo, sentIds, answer } = singleCalls(its);

  it("exits with 7 if no response arrives, and doesn't place a second call on the next runs, even if one is refused", async () => {
    const phone = somePhone();
    its.network.faults.push(...Array.from({ length: 6 }, () => 'lose the response' as const), 'lose the response', { status: 401 });
    const failed = await placeHere(phone);
    expect(failed.code).to.equal(7);
    expect(failed.stderr).to.match(/Run the same command again/);
    // The next run doesn't get a response either, and its retry is refused.
    expect((await placeHere(phone)).code).to.equal(3);
    expect((await placeHere(phone)).stdout).to.contain('was already placed');
    expect(await callsTo(phone)).to.have.length(1);
  });

  it('exits with 7 if the connection is refused, and says that nothing was sent', async () => {
    const args = ['call', 'place', 'x', '--phone', somePhone(), '--server', 'http://127.0.0.1:1', '--json'];
    const { code, stderr } = await its.home.runHere(args);
    expect(code).to.equal(7);
    const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
    expect(error).to.include({ code: 'unreachable', exitCode: 7 });
    expect(error.message).to.match(/connection refused. The call wasn't sent/);
  });

  it('exits with 1 if the response is unexpected', async () => {
    const huge = { status: 202, body: 'x'.repeat(2_000_000) };
    its.network.faults.push({ status: 500, body: 'oh' }, { status: 202, body: '{}' }, { status: 418 }, huge);
    for (let n = 0; n < 4; n++) expect((await place(somePhone())).code).to.equal(1);
  });

  it('retries with the same request ID if the response is lost, and places one call', async () => {
    const phone = somePhone();
    its.network.faults.push('lose the response', 'lose the response');
    expect(answer(await place(phone, '--json'))).to.include({ replayed: true });
    expect(sentIds()).to.have.length(3);
    expect(new Set(sentIds()).size).to.equal(1);
    expect(await callsTo(phone)).to.have.length(1);
  });

  it('never follows a redirect with the key', async () => {
    const elsewhere = await faultyProxy(its.core.url);
    try {
      for (const status of [301, 302, 303, 307, 308]) {
        its.network.faults.push({ status, headers: { Location: `${elsewhere.url}/api` } });
        const { code, stderr } = await place(somePhone());
        expect(code).to.equal(1);
        expect(stderr).to.contain('redirect');
      }
      expect(elsewhere.seen).to.deep.equal([]);
    } finally {
      await elsewhere.close();
    }
  });

  describe('killed before its response arrives', () => {
    it("doesn't place a second call if the killed command already placed one", async () => {
      const phone = somePhone();
      its.network.faults.push('lose the response', { status: 503, headers: { 'Retry-After': '50' } });
      const process = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', phone, '--verbose']);
      await process.printed(/< 503/);
      process.child.kill('SIGKILL');
      await process.ended;
      expect((await placeHere(phone)).stdout).to.contain('was already placed');
      expect(await callsTo(phone)).to.have.length(1);
    });

    it("uses the same request ID even if another process now has the killed command's process ID (needs unshare)", async function () {
      // Each PID namespace starts at 1. In the first run, PID 2 is the command. In the second, it's the unrelated `sleep`.
      const inNamespace = (script: string, args: string[]): [string, string[]] => [
        'unshare',
        ['--map-root-user', '--pid', '--fork', '--kill-child', 'sh', '-c', script, process.execPath, cliMain, ...args],
      ];
      const options = { env: its.home.processEnvironment };
      if (spawnSync(...inNamespace('true', []), options).status !== 0)
        skip(this, 'unshare is missing, or may not make a process namespace');
      const args = ['call', 'place', its.tenants.campaign.id, '--phone', somePhone()];
      its.network.faults.push({ status: 503, headers: { 'Retry-After': '50' } });
      const killed = spawn(...inNamespace('"$0" "$@" & wait', [...args, '--verbose']), options);
      let shown = '';
      killed.stderr.on('data', (text) => {
        shown += text;
      });
      await until(() => shown.includes('< 503'));
      killed.kill('SIGKILL');
      await once(killed, 'close');
      const { stderr } = await promisify(execFile)(...inNamespace('sleep 60 & "$0" "$@"', args), options);
      expect(stderr).to.contain('Retrying with its request ID');
      expect({ sent: sentIds().length, distinct: new Set(sentIds()).size }).to.deep.equal({ sent: 2, distinct: 1 });
    });
  });

  it('places a separate call while the first command is still running', async () => {
    const phone = somePhone();
    const held = Promise.withResolvers<void>();
    its.network.faults.push(held.promise);
    const first = placeHere(phone);
    await until(() => its.network.seen.length === 1);
    const [pending] = globSync(join(its.home.directory, '.local/state/callkey/pending/*'));
    const touchedAt = () => statSync(pending ?? '').mtimeMs;
    const second = await placeHere(phone, async () => {
      const before = touchedAt();
      await until(() => touchedAt() !== before);
    });
    held.resolve();
    expect([(await first).code, second.code]).to.deep.equal([0, 0]);
    expect(await callsTo(phone)).to.have.length(2);
  });

  it('places a new call if the first call has been cancelled', async () => {
    const phone = somePhone();
    its.network.faults.push('lose the response', { status: 503, headers: { 'Retry-After': '3600' } });
    expect((await placeHere(phone)).code).to.equal(7);
    expect((await cancel('--last')).code).to.equal(0);
    expect((await placeHere(phone)).stdout).to.contain('Placed a call');
  });

  it('leaves no data on disk after a refused call', async () => {
    const placed = answer(await place(somePhone(), '--json'));
    const before = its.home.files();
    for (const status of [401, 403, 409, 422]) {
      its.network.faults.push({ status });
      await place(somePhone());
    }
    expect(its.home.files()).to.deep.equal(before);
    expect(answer(await cancel('--last', '--json'))).to.include({ contactId: placed.contactId });
  });

  it('places a new call on the next run if the first call got its response', async () => {
    const phone = somePhone();
    await place(phone);
    await place(phone);
    expect(await callsTo(phone)).to.have.length(2);
  });

  it("doesn't store the phone number", async () => {
    const phone = somePhone();
    its.network.faults.push({ status: 503, headers: { 'Retry-After': '3600' } });
    await place(phone, '--name', 'Ada Lovelace');
    await place(somePhone());
    for (const { path, text } of its.home.files()) expect(text, path).not.to.contain(phone.slice(3)).and.not.contain('Lovelace');
  });
});
