import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { createProgram } from '../../cli/program.ts';
import { sharedIntegrator, singleCalls } from '../support/integrator.ts';
import { somePhone } from '../support/tenants.ts';

describe('callkey as a command-line program', () => {
  const its = sharedIntegrator();
  const { place, cancel, callsTo } = singleCalls(its);

  it('logs requests with --verbose, without the key and only on standard error', async () => {
    const { stdout, stderr } = await place(somePhone(), '--verbose', '--json');
    expect(stderr)
      .to.match(/> POST /)
      .and.match(/X-API-Key: \[redacted\]/)
      .and.match(/< 202/);
    expect(stdout.trim().split('\n')).to.have.length(1);
    expect(stdout + stderr).not.to.contain(its.key);
  });

  it('redacts a key that a response repeats, and removes terminal control characters', async () => {
    const detail = `\u001b[31mKey ${its.key}\u0007 of \u202eada\u2028`;
    its.network.faults.push({ status: 409, body: JSON.stringify({ type: 'urn:x#conflict', title: 'x', status: 409, detail }) });
    const { code, stderr } = await place(somePhone(), '--verbose');
    expect(code).to.equal(5);
    expect(stderr)
      .not.to.contain(its.key)
      .and.not.match(/[^\P{Cc}\n]|[\u202e\u2028]/u);
  });

  it('redacts a key that a response repeats in every result, too', async () => {
    const path = join(its.home.directory, 'contacts.csv');
    writeFileSync(path, `phone\n${somePhone()}\n`);
    for (const [args, code, status] of [
      [['call', 'place', its.tenants.campaign.id, '--from', path], 'conflict', 409],
      [['call', 'cancel', its.tenants.campaign.id, '--from', path], 'already-dialed', 409],
      [['doctor', '--json'], 'invalid', 422],
      [['doctor', '--json'], 'too-many-calls', 429],
    ] as const) {
      const detail = `The request had the key ${its.key}.`;
      const body = JSON.stringify({ type: `urn:callkey:problems#${code}`, title: 'x', status, detail });
      its.network.faults.push({ status, headers: { 'Retry-After': '61' }, body });
      const { stdout, stderr } = await its.home.run([...args]);
      expect(stdout, args[0]).to.contain('The request had the key svc_sk_live_[redacted].');
      expect(stdout + stderr).not.to.contain(its.key);
    }
    expect(its.home.files().filter(({ text }) => text.includes(its.key))).to.deep.equal([]);
  });

  it('prints no error if its output pipe is closed after it has placed the call', async () => {
    const phone = somePhone();
    const process = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', phone]);
    process.child.stdout?.destroy();
    const { code, stderr } = await process.ended;
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(await callsTo(phone)).to.have.length(1);
  });

  it('keeps the key out of the process list', async () => {
    its.network.faults.push({ status: 503, headers: { 'Retry-After': '50' } });
    const process = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), '--verbose']);
    await process.printed(/< 503/);
    expect(execFileSync('ps', ['-ww', '-eo', 'args'], { encoding: 'utf8' }))
      .to.contain('call place')
      .and.not.contain(its.key);
    process.child.kill('SIGKILL');
    await process.ended;
    for (const { path, text } of its.home.files()) expect(text, path).not.to.contain(its.key);
  });

  it('reports errors as JSON on the last line of standard error with --json', async () => {
    const taken = ['--request-id', 'taken-json'];
    await place(somePhone(), ...taken);
    const failing: [string[], string, number][] = [
      [['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), ...taken], 'request-id-conflict', 5],
      [['call', 'place', its.tenants.otherCampaign.id, '--phone', somePhone()], 'campaign-refused', 4],
      [['call', 'place', its.tenants.campaign.id, '--phone', '12'], 'usage', 2],
      [['call', 'place', '--nonsense'], 'usage', 2],
      [['call', 'place', its.tenants.campaign.id, '--rate', 'fast'], 'usage', 2],
      [['call', 'runs', 'discard'], 'usage', 2],
      [['call'], 'usage', 2],
      [['nonsense'], 'usage', 2],
      [[], 'usage', 2],
      [['call', 'cancel', its.tenants.campaign.id, '--last', '--profile', its.key], 'usage', 2],
      [['call', 'cancel', its.tenants.campaign.id, '--request-id', 'nobody'], 'call-not-found', 6],
    ];
    const status = await its.home.run(['key', 'status', '--json'], { environment: { CALLKEY_API_KEY: '' } });
    expect(status.code).to.equal(6);
    expect(JSON.parse(status.stdout)).to.include({ stored: null });
    expect(JSON.parse(status.stderr).error).to.include({ code: 'not-found', exitCode: 6 });
    for (const [args, problem, expected] of failing) {
      const { code, stdout, stderr } = await its.home.run([...args, '--json']);
      expect([code, stdout], args.join(' ')).to.deep.equal([expected, '']);
      const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
      expect(error).to.include({ code: problem, exitCode: expected });
      expect(error.message)
        .to.be.a('string')
        .and.not.match(/^error: /);
      expect(stderr).not.to.contain(its.key);
    }
  });

  it('has a manual page that man can render, with every option', async () => {
    const { code, stdout } = await its.home.run(['man']);
    expect(code).to.equal(0);
    for (const option of ['skip', 'state', 'columns']) expect(stdout).to.contain(`\\-\\-${option}`);
    const { error, stderr, stdout: set } = spawnSync('groff', ['-man', '-Tascii', '-ww'], { input: stdout, encoding: 'utf8' });
    if (error) return;
    expect(stderr).to.equal('');
    // Bold in typewriter style: each letter twice with a backspace in between.
    expect(set.replaceAll(/.[\b]/g, '')).to.match(/--skip-invalid/);
  });

  it('has help with --help and as callkey help, and exits with 0', async () => {
    for (const command of [[], ['call', 'place']]) {
      const help = await its.home.run([...command, '--help']);
      expect(help).to.include({ code: 0, stderr: '' });
      expect(await its.home.run(['help', ...command])).to.deep.equal(help);
    }
  });

  it('has help for every command that fits into 80 columns, with examples', () => {
    const helps = new Map<string, string>();
    const collect = (command: ReturnType<typeof createProgram>, path: string) => {
      const write = (text: string) => helps.set(path, (helps.get(path) ?? '') + text);
      command.configureOutput({ writeOut: write, getOutHelpWidth: () => 80 }).outputHelp();
      for (const sub of command.commands) collect(sub, `${path} ${sub.name()}`.trim());
    };
    collect(
      createProgram('0.1.0', () => Promise.resolve()),
      '',
    );
    for (const [path, help] of helps) {
      expect(help, path).to.match(/Usage: callkey/);
      expect(help.split('\n').filter(({ length }) => length > 80)).to.deep.equal([]);
    }
    for (const path of ['', 'key set', 'call place', 'call cancel', 'call resume', 'call runs', 'call runs discard', 'campaign alias'])
      expect(helps.get(path), path).to.match(/Examples:\n {2}\$ callkey/);
  });

  it('sends its key only to the endpoints for calls, with its version in the User-Agent header', async () => {
    await place(somePhone());
    await cancel('--last');
    expect(its.network.seen.map(({ method, path }) => `${method} ${path.split('/').slice(0, 4).join('/')}`)).to.deep.equal([
      'POST /api/v1/campaigns',
      'DELETE /api/v1/campaigns',
    ]);
    expect(its.network.seen[0]?.headers['user-agent']).to.match(/^callkey\/\d+\.\d+\.\d+ node\/\d+\.\d+\.\d+/);
  });
});
