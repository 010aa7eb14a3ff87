import { expect } from 'chai';
import type { Failure } from '../../../desktop/ipc.ts';
import { describeFailure, fieldError, generalError } from '../../../desktop/renderer/state/failure-text.ts';

const refused = (changes: Partial<Extract<Failure, { kind: 'refused' }>> = {}): Failure => ({
  kind: 'refused',
  code: 'invalid',
  detail: 'Check the fields.',
  errors: [],
  retryAfterSeconds: null,
  ...changes,
});

describe("a failure's text", () => {
  for (const [seconds, text] of [
    [1, 'Check the fields. Try again in 1 second.'],
    [89, 'Check the fields. Try again in 89 seconds.'],
    [90, 'Check the fields. Try again in 2 minutes.'],
    [121, 'Check the fields. Try again in 3 minutes.'],
  ] as const) {
    it(`never shows a shorter wait than the core's ${seconds} s`, () => {
      expect(describeFailure(refused({ retryAfterSeconds: seconds }))).to.equal(text);
    });
  }

  it("doesn't repeat a wait that the core's message contains", () => {
    const detail = 'Too many attempts. Try again in 15 minutes.';
    expect(describeFailure(refused({ code: 'too-many-requests', detail, retryAfterSeconds: 900 }))).to.equal(detail);
  });
});

describe("a field's error", () => {
  const failure = refused({ errors: [{ path: 'expiration.date', message: 'Give a date.' }] });

  it('is the error for the field or a part of it, but not for a field whose name merely starts the same', () => {
    expect(fieldError(failure, 'expiration')).to.equal('Give a date.');
    expect(fieldError(failure, 'expiration.date')).to.equal('Give a date.');
    expect(fieldError(failure, 'exp')).to.equal(null);
  });
});

describe("a form's error", () => {
  const failure = refused({ errors: [{ path: 'name', message: 'Give a name.' }] });

  it("is shown only if none of the form's fields shows the failure", () => {
    expect(generalError(failure, ['name'])).to.equal(null);
    expect(generalError(failure, ['email'])).to.equal('Check the fields.');
  });

  for (const covered of [{ kind: 'session-ended' }, { kind: 'incompatible', core: 'older' }] as const) {
    it(`isn't shown for ${covered.kind}, which a dialog in front of the form explains`, () => {
      expect(generalError(covered, [])).to.equal(null);
    });
  }
});
