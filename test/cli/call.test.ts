import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { cancelledCallSchema, placedCallSchema } from '#contract/calls/calls.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { CliHome, cliMain } from '../support/cli.ts';
import { bareEnvironment, type Ended } from '../support/commands.ts';
import { faultyProxy } from '../support/faulty-proxy.ts';
import { ask } from '../support/http.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { skip } from '../support/skip.ts';
import { createKey, signIn, somePhone } from '../support/tenants.ts';

describe('callkey call', () => {
  const its = sharedIntegrator();

  const place = (phone: string, ...more: string[]) => its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone, ...more]);
  const cancel = (...more: string[]) => its.home.run(['call', 'cancel', its.tenants.campaign.id, ...more]);
  const callsTo = (phone: string) => its.direct.storage.database.read('calls').where({ phone });
  const sentIds = () => its.network.seen.map(({ body }) => String(JSON.parse(body).requestId));
  const answer = ({ code, stdout, stderr }: Ended, expected = 0) => {
    expect(code, stderr).to.equal(expected);
    return JSON.parse(stdout);
  };

  describe('place', () => {
    it('reads a national number with --country, and local times with --zone', async () => {
      const args = ['--phone', '030 23125000', '--country', 'de', '--not-before', '2099-07-01 09:00', '--not-after', '2099-07-01T18:00:30'];
      const { stdout } = await its.home.run([
        'call',
        'place',
        its.tenants.campaign.id,
        ...args,
        '--zone',
        'Europe/Berlin',
        '--dry-run',
        '--json',
      ]);
      expect(JSON.parse(stdout)).to.deep.include({
        ...{ contact: { phone: '+493023125000' }, notBefore: '2099-07-01T07:00:00.000Z', notAfter: '2099-07-01T16:00:30.000Z' },
      });
    });

    for (const [time, zone, says] of [
      ['2027-03-28T02:30', 'Europe/Berlin', /doesn't exist in Europe\/Berlin/],
      ['2027-10-31T02:30', 'Europe/Berlin', /happens twice in Europe\/Berlin/],
      ['2027-02-30T10:00', 'Europe/Berlin', /doesn't exist/],
      ['2027-02-28T10:00', 'Mars/Olympus', /must be an IANA time zone/],
      ['2027-02-28T10:00', undefined, /add --zone/],
    ] as const) {
      it(`refuses --not-before ${time}${zone === undefined ? ' without --zone' : ` in ${zone}`}`, async () => {
        const args = ['--phone', '+493023125000', '--not-before', time, ...(zone === undefined ? [] : ['--zone', zone])];
        const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, ...args]);
        expect([code, its.network.seen.length]).to.deep.equal([2, 0]);
        expect(stderr).to.match(says);
      });
    }

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

    it('tells the user how to cancel the call', async () => {
      const { code, stdout, stderr } = await place(somePhone());
      expect([code, stderr]).to.deep.equal([0, '']);
      expect(stdout)
        .to.match(/Request ID: /)
        .and.contain(`callkey call cancel ${its.tenants.campaign.id} --request-id `);
    });

    it('suggests a cancel command with the same options, and that command works', async () => {
      const { stdout } = await place(somePhone(), '--request-id', '~x', '--profile', 'other');
      const [, cancel = ''] = /^Cancel it with: callkey (.*)$/m.exec(stdout) ?? [];
      expect(cancel).to.equal(`call cancel ${its.tenants.campaign.id} --request-id '~x' --profile other`);
      expect((await its.home.run(cancel.replaceAll("'", '').split(' '))).code).to.equal(0);
    });

    for (const [what, options, says] of [
      ['an invalid phone number', ['--phone', '12'], '--phone: '],
      ['a missing phone number', [], '--phone'],
      ['an invalid time zone', ['--phone', '+493012345678', '--time-zone', 'Mars/Olympus'], '--time-zone: '],
      ['a variable without a value', ['--phone', '+493012345678', '--var', 'x'], '--var x'],
      ['a duplicate variable', ['--phone', '+493012345678', '--var', 'x=1', '--var', 'x=2'], '--var'],
      ['a time without a zone', ['--phone', '+493012345678', '--not-before', 'tomorrow'], '--not-before: '],
      ['a request ID with a space', ['--phone', '+493012345678', '--request-id', 'a b'], '--request-id: '],
      ['both a phone number and a file', ['--phone', '+493012345678', '--from', 'x.csv'], '--from'],
      ['a file option with a single call', ['--phone', '+493012345678', '--skip-invalid'], '--from'],
      ['a concurrency for a single call', ['--phone', '+493012345678', '--concurrency', '8'], '--from'],
      ['a rate for a single call', ['--phone', '+493012345678', '--rate', '20'], '--from'],
      ['--from without a file name', ['--from', ''], '--from: specify a file'],
    ] as const) {
      it(`exits with 2 for ${what}, and sends nothing`, async () => {
        const { code, stdout, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, ...options]);
        expect([code, stdout]).to.deep.equal([2, '']);
        expect(stderr).to.contain(says);
        expect(its.network.seen).to.deep.equal([]);
      });
    }

    it('exits with 2 if the campaign would change the request path', async () => {
      for (const campaign of ['..', '.', 'a/b', '%2e%2e', '']) {
        expect((await its.home.run(['call', 'place', campaign, '--phone', somePhone()])).code).to.equal(2);
      }
      expect(its.network.seen).to.deep.equal([]);
    });

    it('exits with 2 and sends nothing if a variable would be lost or a name has invisible characters', async () => {
      for (const wrong of [
        ['--var', '__proto__=x'],
        ['--name', 'Ada\u202e'],
      ]) {
        expect(await place(somePhone(), ...wrong)).to.include({ code: 2, stdout: '' });
      }
      expect(its.network.seen).to.deep.equal([]);
    });

    it('exits with 2 if the core rejects the input', async () => {
      its.network.faults.push({
        status: 422,
        body: JSON.stringify({
          type: 'urn:x#invalid',
          title: 'x',
          status: 422,
          detail: 'Wrong.',
          errors: [{ path: 'contact.phone', message: 'No such number.' }],
        }),
      });
      const { code, stderr } = await place(somePhone());
      expect(code).to.equal(2);
      expect(stderr).to.contain('contact.phone: No such number.');
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

    it('exits with 2 without a server', async () => {
      const { code, stderr } = await its.home.run(['call', 'place', 'x', '--phone', somePhone()], { environment: { CALLKEY_SERVER: '' } });
      expect(code).to.equal(2);
      expect(stderr).to.contain('--server');
    });

    it('exits with 3 if the key is refused', async () => {
      const environment = { CALLKEY_API_KEY: makeKeyValue(randomBytes) };
      const { code, stderr } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', somePhone()], { environment });
      expect(code).to.equal(3);
      expect(stderr)
        .to.match(/key/)
        .and.match(/callkey key set/);
    });

    it('exits with 4 if the campaign is refused', async () => {
      const { code, stdout } = await its.home.run(['call', 'place', its.tenants.otherCampaign.id, '--phone', somePhone(), '--json']);
      expect([code, stdout]).to.deep.equal([4, '']);
    });

    it('exits with 5 if the request ID was already used for a different call', async () => {
      await place(somePhone(), '--request-id', 'taken');
      expect((await place(somePhone(), '--request-id', 'taken')).code).to.equal(5);
    });

    it('says that the call was already placed if the request ID is repeated', async () => {
      const phone = somePhone();
      const first = answer(await place(phone, '--request-id', 'same', '--json'));
      expect(answer(await place(phone, '--request-id', 'same', '--json'))).to.deep.equal({ ...first, replayed: true });
    });

    it("exits with 7 if no response arrives, and doesn't place a second call on the next run", async () => {
      const phone = somePhone();
      its.network.faults.push(...Array.from({ length: 6 }, () => 'lose the answer' as const));
      const failed = await place(phone);
      expect(failed.code).to.equal(7);
      expect(failed.stderr).to.match(/Run the same command again/);
      expect(answer(await place(phone, '--json'))).to.include({ replayed: true });
      expect(await callsTo(phone)).to.have.length(1);
    });

    it('exits with 7 if the connection is refused, and says that nothing was sent', async () => {
      const args = ['call', 'place', 'x', '--phone', somePhone(), '--server', 'http://127.0.0.1:1', '--json'];
      const { code, stderr } = await its.home.run(args);
      expect(code).to.equal(7);
      const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
      expect(error).to.include({ code: 'unreachable', exitCode: 7 });
      expect(error.message).to.match(/connection refused. The call wasn't sent/);
    });

    it('exits with 1 on any other error', async () => {
      const huge = { status: 202, body: 'x'.repeat(2_000_000) };
      its.network.faults.push({ status: 500, body: 'oh' }, { status: 202, body: '{}' }, { status: 418 }, huge);
      for (let n = 0; n < 4; n++) expect((await place(somePhone())).code).to.equal(1);
    });

    it('retries with the same request ID if the response is lost, and places one call', async () => {
      const phone = somePhone();
      its.network.faults.push('lose the answer', 'lose the answer');
      expect(answer(await place(phone, '--json'))).to.include({ replayed: true });
      expect(sentIds()).to.have.length(3);
      expect(new Set(sentIds()).size).to.equal(1);
      expect(await callsTo(phone)).to.have.length(1);
    });

    for (const status of [429, 503]) {
      it(`retries after ${status}`, async () => {
        its.network.faults.push({ status });
        expect((await place(somePhone())).code).to.equal(0);
        expect(new Set(sentIds()).size).to.equal(1);
      });
    }

    it('waits as long as Retry-After says, and gives up if the wait would be too long', async () => {
      its.network.faults.push({ status: 503, headers: { 'Retry-After': '2' } });
      const began = performance.now();
      expect((await place(somePhone())).code).to.equal(0);
      expect(performance.now() - began).to.be.greaterThan(2000);

      its.network.faults.push({ status: 429, headers: { 'Retry-After': '3600' } });
      const { code, stderr } = await place(somePhone());
      expect(code).to.equal(7);
      expect(stderr).to.contain('3600 s');
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
      it('uses the same request ID on the next run', async () => {
        const phone = somePhone();
        its.network.faults.push({ status: 503, headers: { 'Retry-After': '50' } });
        const process = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', phone, '--verbose']);
        await process.said(/< 503/);
        process.child.kill('SIGKILL');
        await process.ended;
        expect(answer(await place(phone, '--json'))).to.include({ requestId: sentIds()[0] });
        expect(new Set(sentIds()).size).to.equal(1);
      });

      it("doesn't place a second call if the killed command had already placed it", async () => {
        const phone = somePhone();
        its.network.faults.push('lose the answer', { status: 503, headers: { 'Retry-After': '50' } });
        const process = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', phone, '--verbose']);
        await process.said(/< 503/);
        process.child.kill('SIGKILL');
        await process.ended;
        expect(answer(await place(phone, '--json'))).to.include({ replayed: true });
        expect(await callsTo(phone)).to.have.length(1);
      });

      it('uses the same request ID even if the process ID is in use again', async function () {
        // Each PID namespace starts at 1. In the first run, PID 2 is the command. In the second, it's the unrelated `sleep`.
        const inNamespace = (script: string, args: string[]): [string, string[]] => [
          'unshare',
          ['--map-root-user', '--pid', '--fork', '--kill-child', 'sh', '-c', script, process.execPath, cliMain, ...args],
        ];
        const options = { env: { ...bareEnvironment, ...its.home.environment, HOME: its.home.directory } };
        if (spawnSync(...inNamespace('true', []), options).status !== 0)
          skip(this, 'unshare is missing, or may not make a process namespace');
        const args = ['call', 'place', its.tenants.campaign.id, '--phone', somePhone()];
        its.network.faults.push({ status: 503, headers: { 'Retry-After': '50' } });
        const killed = spawn(...inNamespace('"$0" "$@" & wait', [...args, '--verbose']), options);
        await new Promise<void>((resolve) => killed.stderr.on('data', (text) => String(text).includes('< 503') && resolve()));
        killed.kill('SIGKILL');
        await once(killed, 'close');
        const { stderr } = await promisify(execFile)(...inNamespace('sleep 60 & "$0" "$@"', args), options);
        expect(stderr).to.contain('Retrying with its request ID');
        expect([sentIds().length, new Set(sentIds()).size]).to.deep.equal([2, 1]);
      });

      it('places a separate call while the first command is still running', async () => {
        const phone = somePhone();
        its.network.faults.push({ status: 503, headers: { 'Retry-After': '3' } });
        const first = its.home.start(['call', 'place', its.tenants.campaign.id, '--phone', phone, '--verbose']);
        await first.said(/< 503/);
        expect((await place(phone)).code).to.equal(0);
        expect((await first.ended).code).to.equal(0);
        expect(await callsTo(phone)).to.have.length(2);
      });

      it('places a new call if the first call has been cancelled', async () => {
        const phone = somePhone();
        its.network.faults.push('lose the answer', { status: 503, headers: { 'Retry-After': '3600' } });
        expect((await place(phone)).code).to.equal(7);
        expect((await cancel('--last')).code).to.equal(0);
        expect(answer(await place(phone, '--json'))).to.include({ replayed: false });
      });
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

    it('keeps the request ID if a retry is refused after the first response was lost', async () => {
      const phone = somePhone();
      its.network.faults.push('lose the answer', { status: 401 });
      expect((await place(phone)).code).to.equal(3);
      expect(answer(await place(phone, '--json'))).to.include({ replayed: true });
    });

    it('places a new call once the first call has a response', async () => {
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

  describe('cancel', () => {
    it('rejects a response that belongs to another call', async () => {
      const other = {
        requestId: 'other',
        contactId: 'c',
        campaignId: its.tenants.campaign.id,
        state: 'cancelled',
        cancelledAt: '2026-11-21T09:00:00.000Z',
      };
      its.network.faults.push({ status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(other) });
      const { code, stdout, stderr } = await cancel('--request-id', 'mine');
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.contain("didn't come from a Callkey core");
    });

    for (const by of ['--contact', '--request-id', '--last']) {
      it(`cancels by ${by}, and can be repeated`, async () => {
        const placed = answer(await place(somePhone(), '--json'));
        const reference = by === '--last' ? [by] : [by, by === '--contact' ? placed.contactId : placed.requestId];
        const first = answer(await cancel(...reference, '--json'));
        expect(cancelledCallSchema.parse(first)).to.include({ requestId: placed.requestId, contactId: placed.contactId });
        expect(answer(await cancel(...reference, '--json'))).to.deep.equal(first);
      });
    }

    it('refuses a request ID that would change the request path, and sends nothing', async () => {
      const { length } = its.network.seen;
      for (const command of [() => place(somePhone(), '--request-id', '..'), () => cancel('--request-id', '.')]) {
        const { code, stderr } = await command();
        expect(code).to.equal(2);
        expect(stderr).to.contain('but not "." or ".."');
      }
      expect(its.network.seen).to.have.length(length);
    });

    it('retries if the response is lost', async () => {
      await place(somePhone());
      its.network.faults.push('lose the answer', { status: 503 });
      expect((await cancel('--last')).code).to.equal(0);
    });

    it('exits with 2 unless exactly one call is specified', async () => {
      for (const options of [[], ['--last', '--contact', 'x'], ['--contact', 'a b'], ['--request-id', 'ä']]) {
        expect((await cancel(...options)).code).to.equal(2);
      }
    });

    it('exits with 5 if the call has already been dialed', async () => {
      const { contactId } = answer(await place(somePhone(), '--json'));
      await its.direct.storage.database.write('calls').where({ contact_id: contactId }).update({ state: 'dialing' });
      expect((await cancel('--last')).code).to.equal(5);
    });

    it("exits with 6 if the call doesn't exist", async () => {
      expect((await cancel('--request-id', 'no-such-call')).code).to.equal(6);
      const { code, stderr } = await new CliHome(its.home.environment).run(['call', 'cancel', its.tenants.campaign.id, '--last']);
      expect(code).to.equal(6);
      expect(stderr).to.contain('--request-id');
    });
  });

  describe('as a command-line program', () => {
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
      await process.said(/< 503/);
      const { execFileSync } = await import('node:child_process');
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
        [['call'], 'usage', 2],
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

    it('has help with examples for every command, and exits with 0', async () => {
      for (const command of [
        [],
        ['key'],
        ['key', 'set'],
        ['call', 'place'],
        ['call', 'cancel'],
        ['call', 'resume'],
        ['call', 'runs'],
        ['call', 'runs', 'discard'],
        ['campaign', 'alias'],
        ['doctor'],
        ['completion'],
      ]) {
        const { code, stdout, stderr } = await its.home.run([...command, '--help']);
        expect([code, stderr]).to.deep.equal([0, '']);
        expect(stdout).to.match(/Usage: callkey/);
        if (command.length !== 1) expect(stdout).to.match(/Examples:\n {2}\$ callkey/);
      }
    });

    it('prints its version', async () => {
      expect(await its.home.run(['--version'])).to.include({ code: 0, stderr: '' });
    });

    it('exits with 2 for an unknown command or option', async () => {
      for (const args of [
        ['call'],
        ['nonsense'],
        ['call', 'place'],
        ['call', 'place', 'x', '--nonsense'],
        ['call', 'runs', 'discard'],
        [],
      ]) {
        expect((await its.home.run(args)).code).to.equal(2);
      }
    });
  });

  it('sends its key only to the three endpoints', async () => {
    await place(somePhone());
    await cancel('--last');
    const refused = await ask('POST', `${its.core.url}/elsewhere`, { key: its.key });
    expect(refused.status).to.equal(401);
    expect(its.network.seen.map(({ method, path }) => `${method} ${path.split('/').slice(0, 4).join('/')}`)).to.deep.equal([
      'POST /api/v1/campaigns',
      'DELETE /api/v1/campaigns',
    ]);
  });
});
