import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { addNumbers } from '../../core/domain/protection/do-not-call.ts';
import { CliHome, type CliProcess, cliMain, ndjson } from '../support/cli.ts';
import { bareEnvironment } from '../support/commands.ts';
import { spawnCore } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { skip } from '../support/skip.ts';
import { createKey, createTenants, openDirect, signIn } from '../support/tenants.ts';

describe('callkey call place --from', () => {
  const its = sharedIntegrator();
  let files = 0;
  beforeEach(() => {
    files++;
  });

  const phone = (n: number) => `+4930${10_000_000 + files * 100_000 + n}`;
  const csvOf = (count: number, from = 0) =>
    ['phone,name', ...Array.from({ length: count }, (_, n) => `${phone(from + n)},Ada ${from + n}`)].join('\n');
  const file = (text: string | Buffer, name = 'contacts.csv') => {
    const path = join(its.home.directory, name);
    writeFileSync(path, text);
    return path;
  };
  const place = (path: string, ...more: string[]) => its.home.run(['call', 'place', its.tenants.campaign.id, '--from', path, ...more]);
  /** The number of calls to each of this test's phone numbers. */
  const calls = async (): Promise<number[]> => {
    const rows: { phone: string | null }[] = await its.direct.storage.database
      .read('calls')
      .where('phone', 'like', `${phone(0).slice(0, -5)}%`);
    return [...Map.groupBy(rows, (row) => row.phone).values()].map(({ length }) => length);
  };
  const onceEach = (count: number) => Array.from({ length: count }, () => 1);

  describe('reading', () => {
    it('accepts CSV with a header, quotes, blank lines and a byte order mark', async () => {
      const text = `\ufeffPhone,"Name",time_zone,requestId,notAfter,var.note,var.order\r\n${phone(1)},"Lovelace, ""Ada""",Europe/Berlin,,2099-01-01T00:00:00.000Z,"two\nlines",\r\n\r\n${phone(2)},,,own-${files},,,7\r\n`;
      const { code, stdout, stderr } = await place(file(text), '--concurrency', '1');
      expect(code, stderr).to.equal(0);
      const [first, second] = its.network.seen.map(({ body }) => JSON.parse(body));
      expect(first).to.deep.include({
        contact: { phone: phone(1), name: 'Lovelace, "Ada"', timeZone: 'Europe/Berlin' },
        variables: { note: 'two\nlines' },
        notAfter: '2099-01-01T00:00:00.000Z',
      });
      expect(second).to.deep.equal({ requestId: `own-${files}`, contact: { phone: phone(2) }, variables: { order: '7' } });
      expect(ndjson(stdout).map(({ line, status, requestId }) => [line, status, requestId])).to.deep.equal([
        [2, 'placed', first.requestId],
        [5, 'placed', `own-${files}`],
      ]);
    });

    it('accepts NDJSON from standard input', async () => {
      const input = `${JSON.stringify({ contact: { phone: phone(1) }, variables: { a: '1' } })}\n\n${JSON.stringify({ contact: { phone: phone(2) } })}`;
      const { code, stdout } = await its.home.run(['call', 'place', its.tenants.campaign.id, '--from', '-', '--json'], { input });
      expect(code).to.equal(0);
      expect(
        ndjson(stdout)
          .map(({ line }) => line)
          .toSorted(),
      ).to.deep.equal([1, 3]);
      expect(await calls()).to.deep.equal(onceEach(2));
    });

    it("says that it's reading from the terminal, and how to finish", async function () {
      const command = `"${process.execPath}" "${cliMain}" call place ${its.tenants.campaign.id} --from -`;
      const env = { ...bareEnvironment, ...its.home.environment, HOME: its.home.directory };
      // Runs the command in its own terminal, and presses Ctrl-D there.
      const terminal = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: 'pipe' });
      const isThere = await once(terminal, 'spawn').then(
        () => true,
        () => false,
      );
      if (!isThere) skip(this, 'there is no script');
      let stderrText = '';
      terminal.stdout.on('data', (text) => {
        stderrText += String(text);
      });
      terminal.stdin.end('\x04');
      const [code] = await once(terminal, 'close');
      expect(code, stderrText).to.equal(2);
      expect(stderrText).to.contain('Press Ctrl-D to finish.');
    });

    it('reports every invalid line with its number and the reason, and sends nothing', async () => {
      const text = ['phone,name,requestId', `${phone(1)},Ada,a`, '12,Bob,b', `${phone(2)},"Two\nlines",c`, `${phone(3)}`, `${phone(4)},,a`];
      const { code, stdout, stderr } = await place(file(text.join('\n')));
      expect(code).to.equal(2);
      expect(stderr.split('\n').filter((line) => line.startsWith('line '))).to.deep.equal([
        'line 3: contact.phone: Must be a phone number in E.164 format, such as +493012345678.',
        'line 4: contact.name: Must not contain control characters.',
        'line 6: This line has 1 cell, but the header has 3.',
        'line 7: requestId: Line 2 has the same request ID.',
      ]);
      expect(stderr).to.match(/4 of 5 lines .* Nothing was sent.*--skip-invalid/);
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.deep.equal([3, 4, 6, 7].map((line) => [line, 'invalid']));
      expect(its.network.seen).to.deep.equal([]);
    });

    it('places the valid lines with --skip-invalid', async () => {
      const { code, stdout } = await place(file(`phone\n12\n${phone(1)}\n`), '--skip-invalid');
      expect(code).to.equal(0);
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.deep.equal([
        [2, 'invalid'],
        [3, 'placed'],
      ]);
    });

    const unreadable: [string, string | Buffer, RegExp][] = [
      ["a spreadsheet program's own file format", Buffer.from('PK\x03\x04', 'latin1'), /save it as CSV/],
      ['invalid NDJSON', '{"contact":{"phone":"+493012345678"}}\nnonsense\n', /line 2: This isn't valid JSON/],
    ];
    for (const [what, content, says] of unreadable) {
      it(`exits with 2 for ${what}, and sends nothing`, async () => {
        const { code, stderr } = await place(file(content));
        expect(code).to.equal(2);
        expect(stderr).to.match(says);
        expect(its.network.seen).to.deep.equal([]);
      });
    }

    it('sends nothing after a misplaced quote, even with --skip-invalid', async () => {
      const { code } = await place(file(`phone,name\n${phone(1)},A"da\n${phone(2)},Bob\n`), '--skip-invalid');
      expect(code).to.equal(2);
      expect(its.network.seen).to.deep.equal([]);
    });

    it('accepts files saved by a spreadsheet, and warns about ambiguous text', async () => {
      const text = `Mobile;Kunde;Ort\n030 ${phone(1).slice(5)};Jürgen;Köln\n${phone(1)};Zoë;Köln\n`;
      const { code, stdout, stderr } = await place(
        file(Buffer.from(text, 'latin1')),
        ...['--columns', 'phone=Mobile,name=Kunde', '--country', 'DE', '--concurrency', '1'],
      );
      expect(code, stderr).to.equal(0);
      expect(its.network.seen.map(({ body }) => JSON.parse(body).contact)).to.deep.equal([
        { phone: phone(1), name: 'Jürgen' },
        { phone: phone(1), name: 'Zoë' },
      ]);
      expect(stderr)
        .to.contain("isn't UTF-8")
        .and.contain('Ignored: Ort.')
        .and.match(/line 3: warning: .*line 2/)
        .and.match(/1 line with the same phone number as an earlier line\./);
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.deep.equal([
        [2, 'placed'],
        [3, 'placed'],
      ]);
    });

    it('resumes a file with its original reading options, and refuses other options', async () => {
      its.network.faults.push('pass', { status: 401 });
      const path = file(`Mobile;Ort\n030 ${phone(1).slice(5)};Köln\n030 ${phone(2).slice(5)};Köln\n`);
      await place(path, '--columns', 'phone=Mobile', '--country', 'DE', '--concurrency', '1');
      const otherwise = await place(path, '--columns', 'phone=Mobile', '--country', 'AT');
      expect([otherwise.code, otherwise.stderr]).to.satisfy(([code, text]: [number, string]) => code === 5 && text.includes('--columns'));
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(2));
    });

    it("doesn't use more memory for a long file than for a short file", async () => {
      const note = 'x'.repeat(1_000);
      const lines = Array.from({ length: 10_000 }, (_, n) => `+4930${10_000_000 + n},own-${n},${note},${note}`);
      const path = file(['phone,requestId,var.note,var.more', ...lines].join('\n'));
      const args = ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run'];
      // This is less memory than the lines would take. The command itself needs about 20 MB.
      const { code, stderr } = await its.home.start(args, { environment: { NODE_OPTIONS: '--max-old-space-size=40' }, stdout: '/dev/null' })
        .ended;
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('Would place 10,000 of 10,000 lines');
    });

    it("exits with 2 if the file doesn't exist or the rate is invalid", async () => {
      expect((await place(join(its.home.directory, 'none.csv'))).code).to.equal(2);
      for (const option of ['--concurrency', '--rate']) expect((await place(file(csvOf(1)), option, '0')).code).to.equal(2);
      // With two calls a month apart, the delay would be too long for a Node.js timer, which would then fire immediately.
      expect((await place(file(csvOf(1)), '--rate', '0.0000003')).code).to.equal(2);
    });
  });

  describe('with --dry-run', () => {
    it("sends nothing, doesn't need a key, and reports which lines it would place and skip", async () => {
      const path = file(`phone,name\n${phone(1)},Ada\n12,Bob\n${phone(2)},\n`);
      const { code, stdout, stderr } = await its.home.run(
        ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run', '--skip-invalid'],
        { environment: { CALLKEY_API_KEY: '' } },
      );
      expect(code, stderr).to.equal(0);
      const results = ndjson(stdout);
      expect(results.map(({ line, status, contact }) => [line, status, contact])).to.deep.equal([
        [3, 'invalid', undefined],
        [2, 'would-place', { phone: phone(1), name: 'Ada' }],
        [4, 'would-place', { phone: phone(2) }],
      ]);
      expect(stderr).to.match(/Would place 2 of 3 lines .*Nothing was sent/);
      expect(its.network.seen).to.deep.equal([]);

      const placed = ndjson((await place(path, '--skip-invalid')).stdout).filter(({ status }) => status === 'placed');
      expect(new Set(placed.map(({ requestId }) => requestId))).to.deep.equal(
        new Set(results.flatMap(({ requestId }) => (requestId ? [requestId] : []))),
      );
    });

    it('reports which lines were already placed, and leaves the run unchanged', async () => {
      const path = file(csvOf(3));
      its.network.faults.push('pass', { status: 401 });
      await place(path, '--concurrency', '1');
      const kept = its.home.files();
      const { code, stdout, stderr } = await place(path, '--dry-run');
      expect([code, ndjson(stdout).map(({ status }) => status)]).to.deep.equal([0, ['placed-before', 'would-place', 'would-place']]);
      expect(stderr).to.match(/Would place 2 of 3 lines .*Skipped because already placed: 1\./);
      expect(its.home.files()).to.deep.equal(kept);
    });

    it('exits with 2 or 5 like the command itself', async () => {
      expect((await place(file('phone\n12\n'), '--dry-run')).code).to.equal(2);
      its.network.faults.push('pass', { status: 401 });
      await place(file(csvOf(3)), '--concurrency', '1');
      expect((await place(file(csvOf(4)), '--dry-run')).code).to.equal(5);
    });

    it('reports the single call that it would place', async () => {
      const args = ['call', 'place', its.tenants.campaign.id, '--phone', phone(1), '--dry-run'];
      const { code, stdout } = await its.home.run([...args, '--json']);
      expect([code, JSON.parse(stdout)]).to.deep.equal([
        0,
        { status: 'would-place', campaignId: its.tenants.campaign.id, contact: { phone: phone(1) } },
      ]);
      expect(its.network.seen).to.deep.equal([]);
    });
  });

  describe('runs', () => {
    const stopped = async (name: string, from: number, ...more: string[]) => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(csvOf(5, from), name), '--concurrency', '1', ...more);
    };
    const listed = async () => JSON.parse((await its.home.run(['call', 'runs', '--json'])).stdout).runs;

    it('are listed newest first, each with its number of placed calls', async () => {
      expect((await its.home.run(['call', 'runs'])).stdout).to.contain('No files have been placed');
      await place(file(csvOf(3), 'whole.csv'));
      await stopped('part.csv', 50);
      const runs: { run: string; path: string; calls: number; placed: number; completedAt: string | null }[] = await listed();
      expect(
        runs.map(({ path, calls, placed, completedAt }) => [path.split('/').at(-1), calls, placed, completedAt === null]),
      ).to.deep.equal([
        ['part.csv', 5, 1, true],
        ['whole.csv', 3, 3, false],
      ]);
      expect((await its.home.run(['call', 'runs'])).stdout)
        .to.contain(runs[0]?.run)
        .and.contain('1 of 5 placed');
    });

    it("can't be resumed after they're discarded, and their calls aren't placed again", async () => {
      await stopped('part.csv', 0);
      const [{ run }] = await listed();
      const { code, stdout } = await its.home.run(['call', 'runs', 'discard', run]);
      expect([code, stdout]).to.satisfy(([code, text]: [number, string]) => code === 0 && text.includes('stay placed'));
      expect((await its.home.run(['call', 'resume'])).stderr).to.contain('Nothing to resume');
      expect((await place(join(its.home.directory, 'part.csv'))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
      expect((await its.home.run(['call', 'runs', 'discard', 'none'])).code).to.equal(6);
    });

    it('show a warning when discarded that their contacts can be called again, if started with --again', async () => {
      await stopped('part.csv', 0, '--again');
      const [{ run }] = await listed();
      expect((await its.home.run(['call', 'runs', 'discard', run])).stdout).to.match(/with --again, those contacts are called again/);
    });
  });

  describe('placing', () => {
    it('places two identical lines as two calls', async () => {
      await place(file(`phone\n${phone(1)}\n${phone(1)}\n`));
      expect(await calls()).to.deep.equal([2]);
    });

    it("doesn't exceed the rate", async () => {
      const began = performance.now();
      await place(file(csvOf(11)), '--rate', '10');
      expect(performance.now() - began).to.be.greaterThan(1000);
      expect(await calls()).to.deep.equal(onceEach(11));
    });

    it('reports a line that the core rejects, continues with the next line, and retries only the rejected line on the next run', async () => {
      await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone(90), '--request-id', `taken-${files}`]);
      const path = file(`phone,requestId\n${phone(1)},x-${files}\n${phone(2)},taken-${files}\n${phone(3)},y-${files}\n`);
      const { code, stdout, stderr } = await place(path);
      expect(code).to.equal(5);
      expect(ndjson(stdout).find(({ line }) => line === 3)).to.include({ status: 'refused', code: 'request-id-conflict' });
      expect(stderr).to.match(/line 3: rejected/);
      its.network.seen.length = 0;
      expect((await place(path)).code).to.equal(5);
      expect(its.network.seen).to.have.length(1);
    });

    it('skips numbers on the do-not-call list, counts them separately, and succeeds', async () => {
      const owner = { accountId: its.tenants.account.id, partnerId: its.tenants.partner.id };
      const entry = { owner, country: undefined, reason: 'asked', note: null, source: 'admin', endsAt: null } as const;
      await addNumbers(its.direct.ports, operator, { ...entry, phones: [phone(2)] });
      const { code, stdout, stderr } = await place(file(csvOf(3, 1)));
      expect(code, stderr).to.equal(0);
      const results = ndjson(stdout).toSorted((a, b) => Number(a['line']) - Number(b['line']));
      expect(results.map(({ status }) => status)).to.deep.equal(['placed', 'skipped', 'placed']);
      expect(results[1]).to.include({ line: 3, code: 'do-not-call' });
      expect(stderr).to.contain('Skipped 1 line: 1 do-not-call.');
    });

    for (const [what, status, exit] of [
      ['the key', 401, 3],
      ['the campaign', 403, 4],
    ] as const) {
      it(`stops with ${exit} if ${what} is refused, and continues once it's accepted`, async () => {
        const path = file(csvOf(20));
        its.network.faults.push('pass', 'pass', 'pass', { status });
        const stopped = await place(path, '--concurrency', '1');
        expect(stopped.code).to.equal(exit);
        expect(stopped.stderr).to.match(/callkey call resume/);
        expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
        expect(await calls()).to.deep.equal(onceEach(20));
      });
    }

    it('reports why it stopped, but not for each line that had to stop as a result', async () => {
      const busy = { status: 503, headers: { 'Retry-After': '30' } };
      its.network.faults.push(busy, busy, busy, { status: 401 });
      expect((await place(file(csvOf(20)), '--concurrency', '4')).code).to.equal(3);
    });

    it("doesn't store phone numbers or names", async () => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(csvOf(5)));
      const kept = its.home.files().filter(({ path }) => path !== 'contacts.csv');
      expect(kept.map(({ path }) => path).join()).to.contain('runs/');
      for (const { path, text } of kept)
        expect(text, path).not.to.contain(phone(1).slice(4)).and.not.contain('Ada').and.not.contain(its.key);
    });

    it("doesn't support cancel --last, since a file has several calls: cancel then requires an identifier", async () => {
      await place(file(csvOf(2)));
      expect((await its.home.run(['call', 'cancel', its.tenants.campaign.id, '--last'])).code).to.equal(2);
    });
  });

  describe('exactly-once placing', () => {
    const started = (path: string, ...more: string[]) =>
      its.home.start(['call', 'place', its.tenants.campaign.id, '--from', path, ...more]);

    it('survives lost and refused responses throughout the run', async () => {
      its.network.faults.push(...Array.from({ length: 30 }, (_, n) => (n % 2 ? ('lose the answer' as const) : { status: 503 })));
      const { code, stdout } = await place(file(csvOf(60)));
      expect(code).to.equal(0);
      expect(ndjson(stdout)).to.have.length(60);
      expect(await calls()).to.deep.equal(onceEach(60));
    });

    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      it(`survives ${signal}: the command stops cleanly and can be resumed`, async () => {
        const path = file(csvOf(300));
        const run = started(path, '--rate', '100');
        await run.said(/"placed"/);
        run.child.kill(signal);
        const { signal: by, stdout, stderr } = await run.ended;
        expect(by).to.equal(signal);
        expect(stderr).to.match(/placed\..*callkey call resume/s);
        expect((await calls()).length)
          .to.equal(ndjson(stdout).length)
          .and.be.lessThan(300);
        const resumed = await its.home.run(['call', 'resume']);
        expect(resumed.code, resumed.stderr).to.equal(0);
        expect(ndjson(resumed.stdout)).to.have.length(300);
        expect(await calls()).to.deep.equal(onceEach(300));
      });
    }

    it('survives repeated kills of the command and the core', async function () {
      this.timeout(60_000);
      const database = await freshDatabase('sqlite');
      const first = await spawnCore(database, { DIALER: 'off' });
      const other = await openDirect(database);
      const otherTenants = await createTenants(other.ports);
      const keyValue = (await createKey(first.url, await signIn(first.url, 'ada@example.com'))).keyValue;
      const environment = { CALLKEY_API_KEY: keyValue, CALLKEY_SERVER: first.url };
      const args = ['call', 'place', otherTenants.campaign.id, '--from', file(csvOf(1_000))];

      const killed = its.home.start([...args, '--rate', '400'], { environment });
      await killed.said(/"placed"/);
      killed.child.kill('SIGKILL');
      await killed.ended;

      const run = its.home.start([...args, '--rate', '800'], { environment });
      await run.said(/"replayed":false/);
      await first.stop('SIGKILL');
      const second = await spawnCore(database, { DIALER: 'off', PORT: new URL(first.url).port });
      const { code, stdout, stderr } = await run.ended;
      expect(code, stderr).to.equal(0);
      expect(new Set(ndjson(stdout).map(({ line }) => line)).size).to.equal(1_000);
      expect(await other.storage.database.read('calls').countDistinct({ n: 'phone' }).count({ all: '*' })).to.deep.equal([
        { n: 1_000, all: 1_000 },
      ]);
      await other.close();
      await second.stop();
    });

    it('survives a missing or truncated journal', async () => {
      const path = file(csvOf(30));
      its.network.faults.push(...Array.from({ length: 10 }, () => 'pass' as const), { status: 401 });
      await place(path);
      const runs = join(its.home.directory, '.local/state/callkey/runs');
      for (const name of readdirSync(runs)) appendFileSync(join(runs, name), '{"line":2,"conta');
      its.network.faults.push('pass', { status: 401 });
      await place(path);
      const { code } = await new CliHome(its.home.environment).run(['call', 'place', its.tenants.campaign.id, '--from', path]);
      expect(code).to.equal(0);
      expect((await place(path)).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(30));
    });

    it('survives two commands running at the same time', async () => {
      const path = file(csvOf(200));
      const start = () => its.home.start(['call', 'place', its.tenants.campaign.id, '--from', path]).ended;
      const both = await Promise.all([start(), start()]);
      expect(both.map(({ code }) => code)).to.deep.equal([0, 0]);
      expect(await calls()).to.deep.equal(onceEach(200));
    });

    it('reports that all calls of a file were already placed, and places them again only with --again', async () => {
      const path = file(csvOf(10));
      await place(path);
      its.network.seen.length = 0;
      const second = await place(path);
      expect(second.code).to.equal(0);
      expect(second.stderr).to.match(/was already placed in full.*--again/);
      expect(ndjson(second.stdout).every(({ status, replayed }) => status === 'placed' && replayed === true)).to.equal(true);
      expect(its.network.seen).to.deep.equal([]);

      expect((await place(path, '--again')).code).to.equal(0);
      expect(await calls()).to.deep.equal(Array.from({ length: 10 }, () => 2));
    });

    it('resumes a stopped --again run like any other run', async () => {
      const path = file(csvOf(10));
      await place(path);
      its.network.faults.push('pass', 'pass', { status: 401 });
      await place(path, '--again', '--concurrency', '1');
      expect((await place(path, '--again')).code).to.equal(0);
      expect(await calls()).to.deep.equal(Array.from({ length: 10 }, () => 2));
    });

    it('refuses a partly placed file that has changed since, unless --again is given', async () => {
      const path = file(csvOf(10));
      its.network.faults.push('pass', 'pass', { status: 401 });
      await place(path, '--concurrency', '1');
      its.network.seen.length = 0;
      file(csvOf(11));
      for (const args of [
        ['call', 'place', its.tenants.campaign.id, '--from', path],
        ['call', 'resume'],
      ]) {
        const { code, stderr } = await its.home.run(args);
        expect(code).to.equal(5);
        expect(stderr).to.match(/has changed since/);
      }
      expect(its.network.seen).to.deep.equal([]);
      expect((await place(path, '--again')).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).stderr).to.match(/Nothing to resume/);
    });

    it('resumes only at the server where the run started', async () => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(csvOf(5)), '--concurrency', '1');
      expect((await its.home.run(['call', 'resume', '--server', its.core.url])).code).to.equal(2);
      expect((await its.home.run(['call', 'resume'], { environment: { CALLKEY_SERVER: its.core.url } })).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
    });

    it('refuses a partly placed file if its skipped lines have been fixed since, because the other lines were already placed', async () => {
      await place(file(`phone\n12\n${phone(1)}\n`), '--skip-invalid');
      const { code } = await place(file(`phone\n${phone(2)}\n${phone(1)}\n`));
      expect(code).to.equal(5);
      expect(await calls()).to.deep.equal([1]);
    });

    it('refuses a placed file that was edited, even if its lines were moved, but accepts a file with only the new lines', async () => {
      const path = file(csvOf(3));
      await place(path);
      its.network.seen.length = 0;
      file(`var.x,name,phone\n,Eve,${phone(9)}\n,Ada 2,${phone(2)}\n`);
      for (const more of [[], ['--dry-run'], ['--skip-invalid']]) {
        const { code, stderr } = await place(path, ...more);
        expect(code, stderr).to.equal(5);
        expect(stderr).to.match(/has 1 line that was placed before: line 3 \(line 4 of .*\)\. Placing it now.*separate file.*--again/);
      }
      expect(its.network.seen).to.deep.equal([]);
      expect((await place(file(`phone,name\n${phone(9)},Eve\n`))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(4));
      file(csvOf(3, 1));
      expect((await place(path, '--again')).code).to.equal(0);
      expect((await calls()).toSorted()).to.deep.equal([1, 1, 1, 2, 2]);
    });

    it('refuses lines that were already placed from any file, and sends nothing', async () => {
      await place(file(csvOf(3)));
      its.network.seen.length = 0;
      const extended = `${csvOf(3).trimEnd()}\n${phone(9)},Eve\n`;
      const others = [
        file(extended, 'copy.csv'),
        file(csvOf(2).replace('Ada 1', 'Someone else'), 'renamed.csv'),
        file(Buffer.from(`\ufeff${extended}`, 'utf16le'), 'unicode.csv'),
        file(extended.replaceAll(',', ';'), 'semicolons.csv'),
      ];
      for (const path of others) {
        const { code, stderr } = await place(path);
        expect(code, stderr).to.equal(5);
        expect(stderr).to.match(/placed before: line \d \(line \d of .*contacts\.csv/);
      }
      const piped = ['call', 'place', its.tenants.campaign.id, '--from', '-'];
      const spelled = { CALLKEY_SERVER: `${its.network.url.replace('http', 'HTTP')}/` };
      for (const environment of [{}, spelled]) {
        const { code, stderr } = await its.home.run(piped, { input: extended, environment });
        expect(code, stderr).to.equal(5);
        expect(stderr).to.match(/has 3 lines that were placed before/);
      }
      expect(its.network.seen).to.deep.equal([]);
      expect(await calls()).to.deep.equal(onceEach(3));
    });

    it('refuses to resume a file if its remaining lines have been placed from another file since', async () => {
      const path = file(csvOf(3));
      its.network.faults.push('pass', { status: 401 });
      await place(path, '--concurrency', '1');
      expect((await place(file(csvOf(1, 1), 'rest.csv'))).code).to.equal(0);
      its.network.seen.length = 0;
      const { code, stderr } = await its.home.run(['call', 'resume']);
      expect(code, stderr).to.equal(5);
      expect(its.network.seen, stderr).to.deep.equal([]);
      expect(stderr).to.match(/line 3 \(line 2 of .*rest\.csv/);
    });

    it("isn't blocked by an earlier run that didn't place any calls", async () => {
      its.network.faults.push({ status: 401 });
      await place(file(csvOf(3)), '--concurrency', '1');
      expect((await place(file(csvOf(4)))).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).stderr).to.match(/Nothing to resume/);
      expect(await calls()).to.deep.equal(onceEach(4));
    });

    it('accepts a changed file whose lines have their own request IDs', async () => {
      const line = (n: number) => `${phone(n)},own-${files}-${n}`;
      its.network.faults.push('pass', { status: 401 });
      await place(file(`phone,requestId\n${line(1)}\n${line(2)}\n`), '--concurrency', '1');
      expect((await place(file(`phone,requestId\n${line(0)}\n${line(1)}\n${line(2)}\n`))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(3));
    });

    it('places another file at the same path after the first has finished', async () => {
      await place(file(csvOf(3)));
      expect((await place(file(csvOf(3, 100)))).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(6));
    });

    it('asks which run to resume if several were stopped, and accepts its name', async () => {
      for (const name of ['one.csv', 'two.csv']) {
        its.network.faults.push('pass', { status: 401 });
        await place(file(csvOf(5, name === 'one.csv' ? 0 : 50), name), '--concurrency', '1');
      }
      const { code, stderr } = await its.home.run(['call', 'resume']);
      expect(code).to.equal(2);
      const name = /^(\w{8}) {2}.*one\.csv/m.exec(stderr)?.[1] ?? '';
      expect((await its.home.run(['call', 'resume', name])).code).to.equal(0);
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(10));
      expect((await its.home.run(['call', 'resume', name])).code).to.equal(6);
    });

    it('asks for the same standard input again when resuming a run that read from it', async () => {
      its.network.faults.push('pass', { status: 401 });
      const input = csvOf(5);
      const args = ['call', 'place', its.tenants.campaign.id, '--from', '-'];
      await its.home.run(args, { input });
      const { code, stderr } = await its.home.run(['call', 'resume']);
      expect(code).to.equal(2);
      expect(stderr).to.contain('--from -');
      expect((await its.home.run(args, { input })).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(5));
    });

    it('stops when the reader of its results goes away, and says how to resume', async () => {
      const path = file(csvOf(400));
      const run = started(path, '--rate', '200');
      await run.said(/"placed"/);
      run.child.stdout?.destroy();
      const { code, stderr } = await run.ended;
      expect(code).to.equal(1);
      expect(stderr).to.match(/The output pipe was closed.*of 400 lines placed\. To continue, run callkey call resume.*> results\.ndjson/);
      expect((await calls()).length).to.be.lessThan(400);
      const resumed = await its.home.run(['call', 'resume']);
      expect([resumed.code, ndjson(resumed.stdout).length]).to.deep.equal([0, 400]);
      expect(await calls()).to.deep.equal(onceEach(400));
    });

    it("stops when it's piped into head, and head has read the first results", async () => {
      const path = file(csvOf(1_000));
      const command = `"$0" "$@" --rate 500 | head -n 3`;
      const args = [process.execPath, cliMain, 'call', 'place', its.tenants.campaign.id, '--from', path];
      const env = { ...bareEnvironment, ...its.home.environment, HOME: its.home.directory };
      const { stdout } = await promisify(execFile)('sh', ['-c', command, ...args], { env });
      expect(ndjson(stdout)).to.have.length(3);
      expect((await calls()).length).to.be.within(3, 500);
    });

    it("doesn't place any calls if the reader of its results goes away while the file is checked", async () => {
      const wrong = Array.from({ length: 5_000 }, () => '12,');
      const run = started(file(['phone,name', ...wrong, `${phone(1)},Ada`].join('\n')), '--skip-invalid');
      await run.said(/"invalid"/);
      run.child.stdout?.destroy();
      expect(await run.ended).to.include({ code: 1 });
      expect(await calls()).to.deep.equal([]);
    });

    it('succeeds if the reader of its results goes away after the last line was placed', async () => {
      const run = started(file(csvOf(1)));
      run.child.stdout?.destroy();
      expect(await run.ended).to.include({ code: 0 });
      expect(await calls()).to.deep.equal(onceEach(1));
    });

    it('survives a series of faults, and after each fault every acknowledged call is in the database', async function () {
      this.timeout(60_000);
      const path = file(csvOf(1_000));
      const acknowledged = new Map<unknown, unknown>();
      const account = async (stdout: string) => {
        for (const { status, requestId, contactId } of ndjson(stdout.slice(0, stdout.lastIndexOf('\n') + 1)))
          if (status === 'placed') acknowledged.set(requestId, contactId);
        const rows: { request_id: string; contact_id: string }[] = await its.direct.storage.database
          .read('calls')
          .where('phone', 'like', `${phone(0).slice(0, -5)}%`);
        const storedCalls = new Map(rows.map(({ request_id, contact_id }) => [request_id, contact_id]));
        expect(storedCalls.size).to.equal(rows.length);
        for (const [requestId, contactId] of acknowledged) expect(storedCalls.get(String(requestId))).to.equal(contactId);
      };
      const faults: ((run: CliProcess) => unknown)[] = [
        ({ child }) => child.kill('SIGKILL'),
        ({ child }) => child.kill('SIGINT'),
        ({ child }) => child.stdout?.destroy(),
        ({ child }) => child.kill('SIGTERM'),
        () => its.network.faults.push({ status: 401 }),
        ({ child }) => child.kill('SIGKILL'),
      ];
      for (const fault of faults) {
        const run = started(path, '--rate', '800');
        await run.said(/"replayed":false/);
        fault(run);
        await account((await run.ended).stdout);
      }
      const full = await its.home.start(['call', 'place', its.tenants.campaign.id, '--from', path], { stdout: '/dev/full' }).ended;
      expect(full.code).to.equal(1);
      const last = await its.home.run(['call', 'resume']);
      expect(last.code, last.stderr).to.equal(0);
      await account(last.stdout);
      expect(acknowledged.size).to.equal(1_000);
      expect(await calls()).to.deep.equal(onceEach(1_000));
    });
  });
});
