import { expect } from 'chai';
import { errors } from 'undici';
import { parseRetryAfter } from '#contract/parse-retry-after.ts';
import type { Answer } from '../../cli/client/answer.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { backoff, filePolicy, oneCallPolicy, withRetries } from '../../cli/client/retries.ts';
import { systemTiming } from '../../cli/client/timing.ts';
import type { RetryPolicy } from '../../cli/client/types.ts';
import { fakeTiming } from '../support/clock.ts';

type Outcome = number | Answer | Error;

const now = Date.parse('2026-11-22T12:00:00Z');
const systemError = (code: string) => Object.assign(new Error(code), { code });
const answer = (status: number, retryAfter?: string): Answer => ({
  status,
  headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  text: '',
});

/** Sends requests that get these results in order; the last one repeats. The clock is fake: delays are recorded instead of waited for. */
async function sendInto(outcomes: Outcome[], policy: RetryPolicy = oneCallPolicy, onWait?: () => void) {
  const pauses: number[] = [];
  let attempts = 0;
  const timing = {
    ...fakeTiming((milliseconds) => {
      pauses.push(milliseconds);
      onWait?.();
    }),
    now: () => now,
  };
  const send = async () => {
    const outcome = outcomes[Math.min(attempts++, outcomes.length - 1)];
    if (outcome instanceof Error) throw outcome;
    return typeof outcome === 'object' ? outcome : answer(outcome ?? 0);
  };
  const result = await withRetries(send, 'http://core', policy, undefined, timing).catch((error: unknown) => error);
  return { result, pauses, attempts };
}

describe('retries', () => {
  for (const status of [429, 502, 503, 504]) {
    it(`happen after ${status}`, async () => {
      expect(await sendInto([status, 202])).to.deep.equal({ result: { ...answer(202), isRepeat: true }, pauses: [250], attempts: 2 });
    });
  }

  for (const status of [200, 202, 301, 400, 401, 403, 404, 409, 413, 418, 422, 500, 501]) {
    it(`don't happen after ${status}`, async () => {
      expect(await sendInto([status])).to.deep.equal({ result: answer(status), pauses: [], attempts: 1 });
    });
  }

  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'EHOSTUNREACH']) {
    it(`happen after ${code}`, async () => {
      expect(await sendInto([systemError(code), 202])).to.include({ attempts: 2 });
    });
  }

  for (const error of [new TypeError('a bug'), systemError('UND_ERR_INVALID_ARG')]) {
    it(`don't happen after an error that isn't from the network: ${error.message}`, async () => {
      expect(await sendInto([error])).to.deep.equal({ result: error, pauses: [], attempts: 1 });
    });
  }

  it('double their delay up to eight seconds', async () => {
    const { pauses } = await sendInto([503], filePolicy);
    expect(pauses).to.deep.equal([250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000]);
  });

  it('randomize up to half of the delay', () => {
    expect([backoff(1, 0), backoff(1, 1), backoff(20, 0), backoff(20, 1)]).to.deep.equal([125, 250, 4000, 8000]);
  });

  it('last through 30 seconds of downtime for a file, even with the shortest random delays', () => {
    const shortest = Array.from({ length: filePolicy.attempts - 1 }, (_, n) => backoff(n + 1, 0));
    expect(shortest.reduce((sum, pause) => sum + pause)).to.be.greaterThan(27_000);
  });

  it('wait as long as Retry-After says, but never less than their own delay', async () => {
    expect((await sendInto([answer(503, '60'), answer(429, '0'), 202])).pauses).to.deep.equal([60_000, 500]);
  });

  it('stop immediately if Retry-After is more than a minute', async () => {
    const { result, attempts, pauses } = await sendInto([answer(429, '61')]);
    expect(result)
      .to.be.instanceOf(CallkeyError)
      .and.include({ kind: 'unreachable', message: 'http://core asked callkey to wait 2 min before the next request.' });
    expect([attempts, pauses]).to.deep.equal([1, []]);
  });

  it('stop with an explanation if the key has placed all its calls for today', async () => {
    const detail = 'This key has reached its limit of 5 calls per day. It can place calls again after the next midnight in its time zone.';
    const problem = { type: 'urn:callkey:problems#too-many-calls', title: 'Too many calls today', status: 429, detail };
    const { result, attempts } = await sendInto([{ ...answer(429, '13543'), text: JSON.stringify(problem) }]);
    expect(result)
      .to.be.instanceOf(CallkeyError)
      .and.include({ kind: 'unreachable', code: 'too-many-calls', retryAfter: 13_543, message: `${detail} That's in 3 h 46 min.` });
    expect(attempts).to.equal(1);
  });

  it('stop after the last attempt without a delay, and say why', async () => {
    const { result, attempts, pauses } = await sendInto([503, systemError('ECONNREFUSED')], { attempts: 3 });
    expect(result).to.be.instanceOf(CallkeyError).and.include({ kind: 'unreachable' });
    expect(result).to.have.property('message').that.contains('(3 attempts): connection refused');
    expect({ attempts, pauses: pauses.length }).to.deep.equal({ attempts: 3, pauses: 2 });
  });

  for (const [code, reason] of [
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection lost'],
    ['ENOTFOUND', 'host not found'],
    ['EAI_AGAIN', 'host name lookup failed'],
    ['UND_ERR_SOCKET', 'connection lost'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connection timed out'],
    ['UND_ERR_HEADERS_TIMEOUT', 'no response in time'],
    ['UND_ERR_BODY_TIMEOUT', 'no complete response in time'],
    ['UND_ERR_HEADERS_OVERFLOW', 'the response has too many headers'],
    ['EHOSTUNREACH', 'host unreachable'],
    ['UND_ERR_PRX_CONN', "the proxy in HTTPS_PROXY isn't responding"],
    ['EPIPE', 'EPIPE'],
  ] as const) {
    it(`end with an error that describes ${code} as "${reason}"`, async () => {
      const { result } = await sendInto([systemError(code)], { attempts: 1 });
      expect(result).to.have.property('message', `Couldn't reach http://core (1 attempt): ${reason}.`);
    });
  }

  for (const [what, outcomes, isUnsent] of [
    [
      'end with an error that says that nothing was sent if every attempt failed to connect',
      ['ENOTFOUND', 'ECONNREFUSED', 'UND_ERR_PRX_CONN'],
      true,
    ],
    [
      "end with an error that doesn't claim that nothing was sent if any attempt sent the request",
      ['ECONNRESET', 'ECONNREFUSED', 'ECONNREFUSED'],
      false,
    ],
    ["end with an error that doesn't claim that nothing was sent if a core returned a 503", [503, 'ECONNREFUSED', 'ECONNREFUSED'], false],
  ] as const) {
    it(what, async () => {
      const errors = outcomes.map((outcome) => (typeof outcome === 'string' ? systemError(outcome) : outcome));
      const { result } = await sendInto(errors, { attempts: 3 });
      expect(result).to.be.instanceOf(CallkeyError).and.include({ kind: 'unreachable', isUnsent });
    });
  }

  it("end with the error `unreachable` if the response isn't HTTP, because the call may have been placed", async () => {
    const { result } = await sendInto([new errors.HTTPParserError('Invalid')], { attempts: 1 });
    expect(result).to.be.instanceOf(CallkeyError).and.include({ kind: 'unreachable' });
    expect(result).to.have.property('message', "Couldn't reach http://core (1 attempt): the response isn't HTTP.");
  });

  const final: [string, RegExp][] = [
    ['SELF_SIGNED_CERT_IN_CHAIN', /NODE_EXTRA_CA_CERTS/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /NODE_EXTRA_CA_CERTS/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /NODE_EXTRA_CA_CERTS/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /NODE_EXTRA_CA_CERTS/],
    ['CERT_HAS_EXPIRED', /expired.*clock/],
    ['CERT_NOT_YET_VALID', /isn.t valid yet.*clock/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /a different host name/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /doesn't use TLS/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /couldn't agree on TLS.*versions/],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', /couldn't agree on TLS.*versions/],
    ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', /couldn't agree on TLS.*client certificate/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', /couldn't agree on TLS.*client certificate/],
  ];
  for (const [code, says] of final) {
    it(`don't happen after ${code}, and the error says how to fix it`, async () => {
      const { result, attempts, pauses } = await sendInto([systemError(code), 202]);
      expect(result).to.be.instanceOf(CallkeyError).and.include({ kind: 'failed', code: 'untrusted-certificate' });
      expect(result).to.have.property('message').that.matches(says);
      expect([attempts, pauses]).to.deep.equal([1, []]);
    });
  }

  it("don't happen after a response that is larger than any core would send", async () => {
    const { result, attempts } = await sendInto([systemError('UND_ERR_RES_EXCEEDED_MAX_SIZE'), 202]);
    expect(result).to.be.instanceOf(CallkeyError).and.include({ kind: 'failed' });
    expect(result).to.have.property('message').that.contains('Check the server address');
    expect(attempts).to.equal(1);
  });

  it('report the reason before each delay', async () => {
    const reasons: string[] = [];
    await sendInto([systemError('ECONNRESET'), 503, 202], { attempts: 6, onRetry: (reason) => reasons.push(reason) });
    expect(reasons).to.deep.equal(['connection lost', 'the server returned 503']);
  });

  it('send nothing after the signal aborts, before or during a delay', async () => {
    expect(await sendInto([503], { attempts: 6, until: AbortSignal.abort() })).to.deep.include({ attempts: 1, pauses: [] });
    const controller = new AbortController();
    const stopped = await sendInto([503], { attempts: 6, until: controller.signal }, () => controller.abort());
    expect(stopped).to.include({ attempts: 1 });
    expect(stopped.result).to.be.instanceOf(CallkeyError);
  });

  it('end a delay as soon as the signal aborts, and throw its reason', async () => {
    const controller = new AbortController();
    const onRetry = () => controller.abort(new Error('enough'));
    const thrown: unknown = await withRetries(
      async () => {
        controller.signal.throwIfAborted();
        return answer(503, '60');
      },
      'http://core',
      { onRetry },
      controller.signal,
      systemTiming,
    ).catch((error: unknown) => error);
    expect(thrown).to.equal(controller.signal.reason);
  });

  for (const who of ['until', 'signal'] as const) {
    it(`end a delay when the AbortSignal "${who}" aborts, whether or not there's another signal`, async () => {
      for (const both of [true, false]) {
        const controllers = { until: new AbortController(), signal: new AbortController() };
        const signalFor = (name: typeof who) => (both || name === who ? controllers[name].signal : undefined);
        const waits: (AbortSignal | undefined)[] = [];
        const timing = fakeTiming((_, signal) => void waits.push(signal));
        const until = signalFor('until');
        await withRetries(
          async () => answer(waits.length === 0 ? 503 : 202),
          'http://core',
          until ? { until } : {},
          signalFor('signal'),
          timing,
        );
        controllers[who].abort();
        expect(waits.map((signal) => signal?.aborted)).to.deep.equal([true]);
      }
    });
  }

  it('still return the response if the signal aborts while the request is in flight', async () => {
    expect(await sendInto([202], { attempts: 6, until: AbortSignal.abort() })).to.deep.include({ result: answer(202) });
  });

  for (const [header, milliseconds] of [
    [undefined, 0],
    ['0', 0],
    ['120', 120_000],
    ['Sun, 22 Nov 2026 12:00:07 GMT', 7_000],
    ['Sun, 22 Nov 2026 11:59:00 GMT', 0],
    ['Sunday, 22-Nov-26 12:00:07 GMT', 7_000],
    ['Sun Nov 22 12:00:07 2026', 7_000],
    ['Sun, 22 Nov 9999 12:00:00 GMT', 365 * 24 * 3_600_000],
    ['9'.repeat(400), 365 * 24 * 3_600_000],
    ['soon', 0],
    ['soon 2099', 0],
    ['2099-01-01', 0],
    ['-5', 0],
    ['1.5', 0],
    ['', 0],
  ] as const) {
    it(`read Retry-After ${header} as ${milliseconds} ms`, () => expect(parseRetryAfter(header, now)).to.equal(milliseconds));
  }
});
