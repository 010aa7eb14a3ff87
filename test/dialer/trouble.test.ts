import { mock } from 'node:test';
import { expect } from 'chai';
import { pino } from 'pino';
import { type TroubleWatch, watchTrouble } from '../../core/dialer/trouble.ts';
import { plus } from '../../core/domain/instant.ts';
import type { DialingStore, HandoffResult } from '../../core/domain/ports.ts';
import { fakeClock } from '../support/clock.ts';
import { fakePorts } from '../support/ports.ts';

const refused: HandoffResult = { kind: 'not-taken', detail: 'The provider returned 503: no', reason: 'HTTP 503' };
const rejected: HandoffResult = { kind: 'rejected', detail: 'The provider returned 403: no', reason: 'HTTP 403' };
const taken: HandoffResult = { kind: 'taken' };

describe('the warning about a provider that accepts no calls', () => {
  const clock = fakeClock();
  let lines: string[];
  let noted: Parameters<DialingStore['noteTrouble']>[1][];
  let watch: TroubleWatch;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setInterval'] });
    [lines, noted] = [[], []];
    const log = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line).msg) });
    const store = fakePorts({ stores: { dialing: { noteTrouble: async (_, trouble) => void noted.push(trouble) } } }).stores.dialing;
    watch = watchTrouble('core-1', { store, clock, log });
  });
  afterEach(async () => {
    await watch.close();
    mock.timers.reset();
  });

  const minute = () => {
    clock.advance({ minutes: 1 });
    mock.timers.tick(60_000);
  };

  it("isn't logged within the first minute, or for a single call, however long ago it was refused", () => {
    watch.onResult(refused);
    minute();
    expect([lines, watch.seconds()]).to.deep.equal([[], 0]);
    watch.onResult(taken);
    watch.onResult(refused);
    clock.advance({ seconds: 59 });
    watch.onResult(refused);
    expect([lines, watch.seconds()]).to.deep.equal([[], 0]);
  });

  it('is logged once per minute, however many calls are refused, until a call is accepted', async () => {
    watch.onResult(refused);
    const since = clock.now();
    clock.advance({ minutes: 1 });
    for (let n = 0; n < 50; n++) watch.onResult(refused);
    expect([lines, watch.seconds()]).to.deep.equal([["the provider isn't accepting calls"], 60]);
    minute();
    minute();
    expect(lines).to.have.length(3);
    watch.onResult(taken);
    minute();
    expect([lines.slice(3), watch.seconds()]).to.deep.equal([['the provider is accepting calls again'], 0]);
    await watch.close();
    const trouble = { since, reason: 'HTTP 503' };
    expect(noted).to.deep.equal([trouble, trouble, trouble, null]);
  });

  for (const { result, after, minutes } of [
    { result: refused, after: "ten minutes later if the call isn't retried, for example because calling hours hold it", minutes: 10 },
    { result: rejected, after: 'an hour later if the call has ended', minutes: 60 },
  ]) {
    it(`covers the time until the last refused call, and stops ${after}`, async () => {
      watch.onResult(result);
      minute();
      watch.onResult(result);
      for (let n = 0; n < minutes; n++) minute();
      expect(watch.seconds()).to.equal(60);
      minute();
      expect([lines.at(-1), watch.seconds()]).to.deep.equal([
        "no call has been handed off since: the core doesn't know whether the provider accepts calls",
        0,
      ]);
      watch.onResult(result);
      expect(watch.seconds()).to.equal(0);
      await watch.close();
      expect(noted.at(-1)).to.equal(null);
    });
  }

  it('stays until the next attempt, for however long the provider asked to wait', () => {
    watch.onResult(refused);
    minute();
    watch.onResult({ kind: 'not-taken', detail: '', reason: 'HTTP 503', retryAfter: 7_200 });
    for (let n = 0; n < 130; n++) minute();
    expect(watch.seconds()).to.equal(60);
    minute();
    expect(watch.seconds()).to.equal(0);
  });

  it("covers the time until the last refused call even if the clock is set back, and stops if the call isn't retried", async () => {
    watch.onResult(refused);
    minute();
    watch.onResult(refused);
    clock.advance({ days: -1 });
    minute();
    const since = plus(clock.now(), -60_000);
    watch.onResult(refused);
    expect(watch.seconds()).to.equal(60);
    for (let n = 0; n < 11; n++) minute();
    expect(watch.seconds()).to.equal(0);
    await watch.close();
    expect(noted[1]).to.deep.equal({ since, reason: 'HTTP 503' });
  });

  it('also covers calls that the provider rejects or leaves in doubt', () => {
    for (const kind of ['rejected', 'answer-lost'] as const) {
      watch.onResult({ kind, detail: '', reason: 'HTTP 403' });
      clock.advance({ minutes: 1 });
    }
    watch.onResult(refused);
    expect(watch.seconds()).to.equal(120);
  });
});
