import { expect } from 'chai';
import { DateTime } from 'luxon';
import {
  dateForChoice,
  type ExpirationDraft,
  expirationChoices,
  resolveExpiration,
  timeZonesAfter,
  toExpirationChoice,
} from '../../../desktop/renderer/state/api-keys.ts';

const now = DateTime.fromISO('2026-11-21T12:00:00Z');
const draft = (changes: Partial<ExpirationDraft>): ExpirationDraft => ({ choice: '', date: '', timeZone: 'Europe/Berlin', ...changes });

describe('the expiration form', () => {
  it('asks the user to choose an expiration first', () => {
    expect(resolveExpiration(draft({}), now)).to.deep.equal({ ok: false, field: 'choice', problem: 'Choose an expiration.' });
  });

  it('explains what "no expiration" means', () => {
    expect(resolveExpiration(draft({ choice: 'none' }), now)).to.deep.equal({
      ok: true,
      expiration: { kind: 'none' },
      text: 'Works until it’s revoked.',
    });
  });

  it('shows the last moment of the last day in the chosen zone', () => {
    expect(resolveExpiration(draft({ choice: '1' }), now)).to.deep.equal({
      ok: true,
      expiration: { kind: 'years', years: 1 },
      text: 'Works until 21 Nov 2027, 23:59:59 Europe/Berlin (in 1 year)',
    });
  });

  it('asks for the date of a custom expiration, and says which dates are allowed', () => {
    expect(resolveExpiration(draft({ choice: 'custom' }), now)).to.deep.equal({
      ok: false,
      field: 'date',
      problem: 'Choose a date from 22 Nov 2026 to 20 Nov 2031.',
    });
  });

  for (const date of ['1/2/2027', '1. März 2027', '31 Feb 2027', '2027-02-31']) {
    it(`says that ${date} isn't a day`, () => {
      expect(resolveExpiration(draft({ choice: 'custom', date }), now)).to.deep.equal({
        ok: false,
        field: 'date',
        problem: 'Enter a day, such as 31 Jan 2027.',
      });
    });
  }

  it('counts days in the chosen zone, where it may already be the next day', () => {
    const late = DateTime.fromISO('2026-11-21T22:58:30Z');
    const inAuckland = draft({ choice: 'custom', date: '2026-11-22', timeZone: 'Pacific/Auckland' });
    expect(resolveExpiration(inAuckland, late)).to.deep.include({ ok: false, field: 'date' });
    expect(resolveExpiration({ ...inAuckland, timeZone: 'Europe/Berlin' }, late)).to.deep.include({
      ok: true,
      expiration: { kind: 'custom', date: '2026-11-22' },
    });
  });

  it('offers every zone once, with UTC near the top', () => {
    const timeZones = timeZonesAfter('Europe/Berlin');
    expect(new Set(timeZones).size).to.equal(timeZones.length);
    expect(timeZones.slice(0, 2)).to.deep.equal(['Europe/Berlin', 'UTC']);
  });

  it('shows the date for each choice', () => {
    expect(expirationChoices.map((choice) => dateForChoice(choice, now, 'Europe/Berlin'))).to.deep.equal([
      'until revoked',
      '21 Nov 2027',
      '21 Nov 2028',
      '21 Nov 2029',
      '21 Nov 2030',
      '20 Nov 2031',
      'choose a date',
    ]);
  });
});

describe('the expiration that a key was created with', () => {
  const key = (expiresAt: string | null) => ({ createdAt: '2026-11-21T12:00:00.000Z', expiresAt, expiryTimeZone: 'Europe/Berlin' });
  const choices: readonly (readonly [string | null, string])[] = [
    [null, 'none'],
    ['2027-11-21T22:59:59.999Z', '1'],
    ['2031-11-20T22:59:59.999Z', '5'],
    ['2027-01-31T22:59:59.999Z', 'custom'],
  ];
  for (const [expiresAt, choice] of choices) {
    it(`is ${choice} for a key that ${expiresAt ? `expires at ${expiresAt}` : 'never expires'}`, () =>
      expect(toExpirationChoice(key(expiresAt))).to.equal(choice));
  }
});
