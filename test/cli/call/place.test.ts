import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { placedCallSchema } from '#contract/calls/calls.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { cliMain } from '../../support/cli.ts';
import { onDoNotCallList, sharedIntegrator, singleCalls } from '../../support/integrator.ts';
import { faultyProxy } from '../../support/proxies.ts';
import { skip } from '../../support/suites.ts';
import { createKey, signIn, somePhone } from '../../support/tenants.ts';
import { until } from '../../support/until.ts';

describe('callkey call place', () => {
  const its = sharedIntegrator();
  const { place, placeHere, cancel, callsTo, sentIds, answer } = singleCalls(its);

  it('reads a national number with --country, and local times with --zone, and sends nothing with --dry-run', async () => {
    const args = ['--phone', '030 23125000', '--country', 'de', '--not-before', '2099-07-01 09:00', '--not-after', '2099-07-01T18:00:30'];
    const shown = ['--zone', 'Europe/Berlin', '--dry-run', '--json'];
    expect(answer(await its.home.run(['call', 'place', its.tenants.campaign.id, ...args, ...shown]))).to.deep.equal({
      ...{ status: 'would-place', campaignId: its.tenants.campaign.id, contact: { phone: '+493023125000' } },
      ...{ notBefore: '2099-07-01T07:00:00.000Z', notAfter: '2099-07-01T16:00:30.000Z' },
    });
    expect(its.network.seen).to.deep.equal([]);
  });

  it('exits with 3 if the key is rejected, and says where it came from: the environment, which overrides, or the profile that the option or the environment names', async () => {
    const unknown = makeKeyValue(randomBytes);
    const noKey = { CALLKEY_API_KEY: '' };
    const set = ['key', 'set', '--insecure-storage', '--profile', 'old'];
    expect((await its.home.run(set, { input: unknown, environment: noKey })).code).to.equal(0);
    const inFile = /It's in the file .*keys\/old@.*, for the profile old/;
    for (const [environment, profile, says] of [
      [
        { CALLKEY_API_KEY: unknown },
        ['--profile', 'old'],
        /CALLKEY_API_KEY, which overrides any stored key\. To use a stored key, unset CALLKEY_API_KEY\./,
      ],
      [noKey, ['--profile', 'old'], /old \(from --profile\)\. To replace it, run callkey key set --profile old\./],
      [{ ...noKey, CALLKEY_PROFILE: 'old' }, [], /old \(from CALLKEY_PROFILE\)\. To replace it, run callkey key set --profile old\./],
    ] as const) {
      const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), ...profile], {
        environment,
      });
      expect([code, says.test(stderr), stderr.includes(unknown.slice(12))], stderr).to.deep.equal([3, true, false]);
      if (environment.CALLKEY_API_KEY === '') expect(stderr).to.match(inFile);
    }
  });

  it('warns on standard error when the key expires soon', async () => {
    const day = new Date(Date.now() + 10 * 86_400_000).toISOString().slice(0, 10);
    const cookie = await signIn(its.core.url, 'ada@example.com');
    const { keyValue } = await createKey(its.core.url, cookie, 'Ending', { kind: 'custom', date: day });
    const { code, stdout, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone(), '--json'], {
      environment: { CALLKEY_API_KEY: keyValue },
    });
    expect([code, Object.keys(JSON.parse(stdout))], stderr).to.deep.equal([
      0,
      ['requestId', 'contactId', 'campaignId', 'state', 'placedAt', 'replayed'],
    ]);
    expect(stderr).to.match(/^The API key expires in (9|10) days, at \d{4}-\d\d-\d\dT[\d:.]+Z\./);
  });

  it('rejects a response that belongs to another request ID', async () => {
    const phone = somePhone();
    const other = {
      requestId: 'other',
      contactId: 'c',
      campaignId: its.tenants.campaign.id,
      state: 'queued',
      placedAt: '2026-11-21T09:00:00.000Z',
    };
    its.network.faults.push({ status: 202, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(other) });
    const { code, stdout, stderr } = await place(phone, '--request-id', 'mine');
    expect([code, stdout]).to.deep.equal([1, '']);
    expect(stderr).to.contain("didn't come from a Callkey core");
  });

  it('places a call and prints it', async () => {
    const phone = somePhone();
    const options = ['--name', 'Ada Lovelace', '--time-zone', 'Europe/Berlin', '--var', 'orderNumber=4711', '--var', 'note=a=b'];
    const when = ['--not-before', '2026-11-21T09:00:00.000Z', '--not-after', '2099-11-21T18:00:00.000Z', '--request-id', 'order-4711'];
    const placed = answer(await place(phone, ...options, ...when, '--json'));
    expect({ ...placedCallSchema.parse(placed), replayed: false }).to.deep.equal(placed);
    expect(placed).to.include({ requestId: 'order-4711', campaignId: its.tenants.campaign.id, replayed: false });
    expect(JSON.parse(its.network.seen[0]?.body ?? '')).to.deep.equal({
      requestId: 'order-4711',
      contact: { phone, name: 'Ada Lovelace', timeZone: 'Europe/Berlin' },
      variables: { orderNumber: '4711', note: 'a=b' },
      notBefore: '2026-11-21T09:00:00.000Z',
      notAfter: '2099-11-21T18:00:00.000Z',
    });
  });

  it('suggests a cancel command with the same options, and that command works', async () => {
    const { code, stdout, stderr } = await place(somePhone(), '--request-id', '~x', '--profile', 'other');
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.contain('Request ID: ~x');
    const [, cancel = ''] = /^Cancel it with: callkey (.*)$/m.exec(stdout) ?? [];
    expect(cancel).to.equal(`call cancel ${its.tenants.campaign.id} --request-id '~x' --profile other`);
    expect((await its.home.run(cancel.replaceAll("'", '').split(' '))).code).to.equal(0);
  });

  const valid = ['--phone', '+493012345678'];
  for (const [what, options, says] of [
    ['an invalid phone number', ['--phone', '12'], '--phone: '],
    ['a missing phone number', [], '--phone'],
    ['a name with invisible characters', [...valid, '--name', 'Ada\u202e'], '--name: '],
    ['an invalid time zone', [...valid, '--time-zone', 'Mars/Olympus'], '--time-zone: '],
    ['a variable without a value', [...valid, '--var', 'x'], '--var x'],
    ['a variable named __proto__', [...valid, '--var', '__proto__=x'], '--var'],
    ['a duplicate variable', [...valid, '--var', 'x=1', '--var', 'x=2'], '--var'],
    ['a time without a zone', [...valid, '--not-before', 'tomorrow'], '--not-before: '],
    ['an abbreviation as a zone', [...valid, '--zone', 'BST', '--not-before', '2027-02-28T10:00'], 'such as Europe/London'],
    ['a request ID with a space', [...valid, '--request-id', 'a b'], '--request-id: '],
    ['both a phone number and a file', [...valid, '--from', 'x.csv'], '--from'],
    ['a file option with a single call', [...valid, '--skip-invalid'], '--from'],
    ['a concurrency for a single call', [...valid, '--concurrency', '8'], '--from'],
    ['a rate for a single call', [...valid, '--rate', '20'], '--from'],
    ['--from without a file name', ['--from', ''], '--from: specify a file'],
  ] as const) {
    it(`exits with 2 for ${what}, and sends nothing`, async () => {
      const { code, stdout, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, ...options]);
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(stderr).to.contain(says);
      expect(its.network.seen).to.deep.equal([]);
    });
  }

  it('exits with 2 if the campaign ID would change the request path', async () => {
    for (const campaign of ['..', '.', 'a/b', '%2e%2e', '']) {
      expect((await its.home.run(['call', 'place', campaign, '--phone', somePhone()])).code).to.equal(2);
    }
    expect(its.network.seen).to.deep.equal([]);
  });

  it('exits with 2 without a key, or if the key is mistyped', async () => {
    for (const mistyped of ['', its.key.slice(0, -1), `${its.key.slice(0, -1)}!`]) {
      const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone()], {
        environment: { CALLKEY_API_KEY: mistyped },
      });
      expect(code).to.equal(2);
      expect(stderr).not.to.contain(its.key.slice(0, 30));
    }
    expect(its.network.seen).to.deep.equal([]);
  });

  describe('when a request fails,', () => {
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

    const lost = 'lose the response';
    for (const [when, faults, codes] of [
      ['if a response was lost and the retry was refused', [lost, { status: 401 }], [3, 0]],
      ['if an earlier run got no response, and this one was refused', [...Array<typeof lost>(6).fill(lost), { status: 401 }], [7, 3, 0]],
      ["if the server failed, because it doesn't say whether it placed the call", [{ status: 500, body: 'oh' }], [1, 0]],
    ] as const) {
      it(`keeps the request ID for the next run ${when}`, async () => {
        const phone = somePhone();
        its.network.faults.push(...faults);
        for (const code of codes) expect((await placeHere(phone)).code).to.equal(code);
        expect(new Set(sentIds()).size).to.equal(1);
      });
    }

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

    it('exits with 8 if the person must not be called', async () => {
      its.network.faults.push(onDoNotCallList);
      expect((await place(somePhone())).code).to.equal(8);
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
        let waited = 0;
        const { stdout } = await placeHere(phone, (milliseconds) => {
          waited += milliseconds;
        });
        expect(stdout).to.contain('was already placed');
        // A running command touches its file ten times in a second.
        expect(waited).to.equal(1_000);
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
});
