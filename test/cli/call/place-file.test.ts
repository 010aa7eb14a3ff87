import { join } from 'node:path';
import { expect } from 'chai';
import { operator } from '../../../core/domain/audit/audit.ts';
import { addNumbers } from '../../../core/domain/protection/do-not-call.ts';
import { ndjson } from '../../support/cli.ts';
import { callFiles, sharedIntegrator } from '../../support/integrator.ts';

describe('callkey call place --from', () => {
  const its = sharedIntegrator();
  const { phone, createCsv, file, place, calls, onceEach, own } = callFiles(its);

  describe('reading', () => {
    it("says that it's reading from the terminal, and how to finish", async function () {
      // Ctrl-D ends the input.
      const { code, text } = await its.home.onTerminal(this, ['call', 'place', its.tenants.campaign.id, '--from', '-'], '\x04');
      expect(code, text).to.equal(2);
      expect(text).to.contain('Press Ctrl-D to finish.');
    });

    it('reports every invalid line with its number and the reason, and sends nothing', async () => {
      const text = [
        'phone,name,requestId',
        `${phone(1)},Ada,a`,
        '12,Bob,b',
        `${phone(2)},"Two\nlines",c`,
        `${phone(3)},Cy,d,e`,
        `${phone(4)},,a`,
      ];
      const { code, stdout, stderr } = await place(file(text.join('\n')));
      expect(code).to.equal(2);
      expect(stderr.split('\n').filter((line) => line.startsWith('line '))).to.deep.equal([
        'line 3: contact.phone: Must be a phone number in E.164 format, such as +493012345678.',
        'line 4: contact.name: Must not contain control characters.',
        'line 6: This line has 4 cells, but the header has 3.',
        'line 7: requestId: Line 2 has the same request ID.',
      ]);
      expect(stderr).to.match(/4 of 5 lines .* Nothing was sent.*--skip-invalid/);
      expect(ndjson(stdout).map(({ line, status }) => [line, status])).to.deep.equal([3, 4, 6, 7].map((line) => [line, 'invalid']));
      expect(its.network.seen).to.deep.equal([]);
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
      const variables = ['a', 'b', 'c', 'd', 'e'];
      const notes = variables.map(() => 'x'.repeat(1_000)).join();
      const lines = Array.from({ length: 10_000 }, (_, n) => `+4930${10_000_000 + n},own-${n},${notes}`);
      const path = file([`phone,requestId,${variables.map((name) => `var.${name}`).join()}`, ...lines].join('\n'));
      const args = ['call', 'place', its.tenants.campaign.id, '--from', path, '--dry-run'];
      // The lines would take 50 MB, and the command itself needs about 20 MB. With less memory, it would mostly collect garbage.
      const { code, stderr } = await its.home.start(args, { environment: { NODE_OPTIONS: '--max-old-space-size=60' }, stdout: '/dev/null' })
        .ended;
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain('Would place 10,000 of 10,000 lines');
    });

    it("exits with 2 if the file doesn't exist or the rate is invalid", async () => {
      expect((await place(join(its.home.directory, 'none.csv'))).code).to.equal(2);
      for (const option of ['--concurrency', '--rate']) expect((await place(file(createCsv(1)), option, '0')).code).to.equal(2);
      // With two calls a month apart, the delay would be too long for a Node.js timer, which would then fire immediately.
      expect((await place(file(createCsv(1)), '--rate', '0.0000003')).code).to.equal(2);
    });
  });

  describe('placing', () => {
    it('places two identical lines as two calls', async () => {
      await place(file(`phone\n${phone(1)}\n${phone(1)}\n`));
      expect(await calls()).to.deep.equal([2]);
    });

    it('reports a line that the core rejects, continues with the next line, and retries only the rejected line on the next run', async () => {
      await its.home.run(['call', 'place', its.tenants.campaign.id, '--phone', phone(90), '--request-id', `taken-${own()}`]);
      const path = file(`phone,requestId\n${phone(1)},x-${own()}\n${phone(2)},taken-${own()}\n${phone(3)},y-${own()}\n`);
      const { code, stdout, stderr } = await place(path);
      expect(code).to.equal(5);
      expect(ndjson(stdout).find(({ line }) => line === 3)).to.include({ status: 'refused', code: 'request-id-conflict' });
      expect(stderr).to.match(/line 3: rejected/);
      its.network.seen.length = 0;
      expect((await place(path)).code).to.equal(5);
      expect(its.network.seen).to.have.length(1);
    });

    it('skips numbers on the do-not-call list, counts them separately, and succeeds', async () => {
      const entry = { accountId: its.tenants.account.id, reason: 'asked', timeZone: 'UTC' } as const;
      await addNumbers(its.direct.ports, operator, { ...entry, phones: [phone(2)] });
      const { code, stdout, stderr } = await place(file(createCsv(3, 1)));
      expect(code, stderr).to.equal(0);
      const results = ndjson(stdout).toSorted((a, b) => Number(a['line']) - Number(b['line']));
      expect(results.map(({ status }) => status)).to.deep.equal(['placed', 'skipped', 'placed']);
      expect(results[1]).to.include({ line: 3, code: 'do-not-call' });
      expect(stderr).to.contain('Skipped 1 line: 1 do-not-call.');
    });

    it("stops immediately with 4 if the campaign is refused, even if other lines wait for a retry, and continues once it's accepted", async () => {
      const path = file(createCsv(20));
      // These waits would take longer than this test may.
      const busy = { status: 503, headers: { 'Retry-After': '60' } };
      its.network.faults.push('pass', busy, busy, busy, { status: 403 });
      const stopped = await place(path, '--concurrency', '4');
      expect(stopped.code).to.equal(4);
      expect(stopped.stderr).to.match(/callkey call resume/);
      expect((await its.home.run(['call', 'resume'])).code).to.equal(0);
      expect(await calls()).to.deep.equal(onceEach(20));
    });

    it("doesn't store phone numbers or names", async () => {
      its.network.faults.push('pass', { status: 401 });
      await place(file(createCsv(5)));
      const kept = its.home.files().filter(({ path }) => path !== 'contacts.csv');
      expect(kept.map(({ path }) => path).join()).to.contain('runs/');
      for (const { path, text } of kept)
        expect(text, path).not.to.contain(phone(1).slice(4)).and.not.contain('Ada').and.not.contain(its.key);
    });

    it('makes cancel --last fail, because a file contains several calls', async () => {
      await place(file(createCsv(2)));
      expect((await its.home.run(['call', 'cancel', its.tenants.campaign.id, '--last'])).code).to.equal(2);
    });
  });
});
