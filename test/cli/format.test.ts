import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { formatCount } from '#contract/text/count.ts';
import { formatPace, progressLine } from '../../cli/batch/batch.ts';
import { problemError } from '../../cli/client/answer.ts';
import { shellCommand } from '../../cli/terminal/help.ts';

describe('the command line', () => {
  it('groups the digits of a count in thousands', () => {
    expect([0, 999, 10_000, 1_234_567].map(formatCount)).to.deep.equal(['0', '999', '10,000', '1,234,567']);
  });

  it('shows the time left in a run', () => {
    expect(formatPace(800.4, 8_000)).to.equal('800 per second, 10 s left');
    expect(formatPace(20, 10_000)).to.equal('20 per second, 9 min left');
    expect(formatPace(1, 7_230)).to.equal('1 per second, 2 h 1 min left');
    for (const [rate, remaining] of [
      [0, 5],
      [Number.NaN, 5],
      [5, 0],
    ] as const)
      expect(formatPace(rate, remaining)).to.match(/^\S+ per second$/);
  });

  it('shows progress as a bar, a percentage rounded down, and counts', () => {
    expect(progressLine(0, 3, 'x')).to.equal('[........................] 0%  0 of 3  x');
    expect(progressLine(9_999, 10_000, '8 per second')).to.equal('[#######################.] 99%  9,999 of 10,000  8 per second');
    expect(progressLine(3, 3, 'x')).to.equal('[########################] 100%  3 of 3  x');
    expect(progressLine(7, 3, 'x')).to.equal('[########################] 100%  7 of 7  x');
    expect(progressLine(0, 0, 'x')).to.equal('[........................] 0%  0 of 0  x');
  });

  it('quotes a command’s arguments for the shell, and appends the given options', () => {
    const words = ['with space', "Ada's", '$HOME', '~root', 'a~b', 'order:4711', '-x', '', 'Jürgen', 'two\nlines'];
    const command = shellCommand({ state: '/var/my state', profile: 'staging', server: undefined }, 'echo', ...words);
    expect(command).to.match(/^callkey echo 'with space' .* a~b order:4711 -x /s);
    const read = execFileSync('sh', ['-c', command.replace(/^callkey echo/, 'printf "%s\\0"')], { encoding: 'utf8' });
    expect(read.split('\0').slice(0, -1)).to.deep.equal([...words, '--profile', 'staging', '--state', '/var/my state']);
  });

  it('starts a command as this one was started, also by npm in a checkout', () => {
    const before = process.env['npm_lifecycle_event'];
    after(() => Object.assign(process.env, { npm_lifecycle_event: before ?? '' }));
    process.env['npm_lifecycle_event'] = 'callkey';
    expect(shellCommand({}, 'call', 'resume')).to.equal('npm run callkey -- call resume');
    process.env['npm_lifecycle_event'] = 'test';
    expect(shellCommand({}, 'call', 'resume')).to.equal('callkey call resume');
  });
});

describe('the error for a response', () => {
  const problem = (status: number, more: object = {}) =>
    problemError({
      status,
      headers: {},
      text: JSON.stringify({ type: 'urn:callkey:problems#conflict', title: 'x', status, detail: 'D.', ...more }),
    });

  for (const [status, kind] of [
    [400, 'usage'],
    [401, 'keyRefused'],
    [403, 'campaignRefused'],
    [404, 'notFound'],
    [409, 'conflict'],
    [413, 'usage'],
    [415, 'usage'],
    [422, 'usage'],
    [300, 'failed'],
    [302, 'failed'],
    [418, 'failed'],
    [500, 'failed'],
  ] as const) {
    it(`has the kind ${kind} for ${status}`, () => expect(problem(status)).to.include({ kind, status, isRepeat: false }));
  }

  it('says where a refused key came from, and lists all possible reasons, because the server never says which one applies', () => {
    const body = { type: 'urn:callkey:problems#unauthorized', title: 'x', status: 401, detail: 'D.' };
    const { message } = problemError({ status: 401, headers: {}, text: JSON.stringify(body) }, "It's here.");
    expect(message).to.match(
      /^The server rejected the API key\. It's here\. Either the key is unknown, revoked, expired .* address is wrong\./,
    );
  });

  it('says what to check for a refused campaign', () => {
    expect(problem(403).message).to.match(/^D\. Check the campaign ID\./);
  });

  for (const [status, code] of [
    [403, 'do-not-call'],
    [422, 'outside-calling-hours'],
  ] as const) {
    it(`has the kind notCallable for ${code}, and doesn't suggest checking the campaign`, () => {
      const error = problem(status, { type: `urn:callkey:problems#${code}` });
      expect(error).to.include({ kind: 'notCallable', code, message: 'D.' });
    });
  }

  it("includes the core's detail, code and field errors", () => {
    const errors = [
      { path: 'contact.phone', message: 'No such number.' },
      { path: '', message: 'Wrong.' },
    ];
    expect(problem(409, { errors })).to.include({ code: 'conflict', message: 'D.\n  contact.phone: No such number.\n  body: Wrong.' });
  });

  it("doesn't repeat the field error that's in the core's detail", () => {
    const errors = [
      { path: 'contact.phone', message: 'Must be text.' },
      { path: 'contact.timeZone', message: 'Must be text.' },
    ];
    const error = problem(422, { detail: 'Invalid body at contact.phone: Must be text.', errors });
    expect(error.message).to.equal('Invalid body at contact.phone: Must be text.\n  contact.timeZone: Must be text.');
    expect(error.errors).to.deep.equal(errors);
  });

  it("includes the request's ID for an internal error", () => {
    expect(problem(500, { instance: 'r-1' }).message).to.equal("D. The request's ID is r-1.");
  });

  it("reports only the status if the response isn't from a core", () => {
    for (const status of [403, 404, 500]) {
      const { message } = problemError({ status, headers: {}, text: '<html>' });
      expect(message)
        .to.contain(`The server returned ${status}, but the response isn't from a Callkey core. Check the server address`)
        .and.not.contain('campaign');
    }
  });

  it('names only the host of a redirect', () => {
    const redirect = (headers: { location?: string }) => problemError({ status: 307, headers, text: '' }).message;
    expect(redirect({ location: 'https://evil.example/?steal' })).to.match(
      /a redirect \(307\).* use its address: https:\/\/evil\.example$/,
    );
    expect(redirect({})).to.match(/Use the address that it redirects to\.$/);
  });
});
