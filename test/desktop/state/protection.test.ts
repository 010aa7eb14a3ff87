import { expect } from 'chai';
import { completeLine, csvRow, csvStart } from '#contract/files/csv.ts';
import { type HoursRule, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';
import type { CheckedNumberView } from '#contract/protection/protection.ts';
import { describeHeld, describeState } from '../../../desktop/renderer/screens/calls/held.ts';
import {
  describeDates,
  describePrefixes,
  formatWindows,
  leavesNumbersOpen,
  toWeeks,
} from '../../../desktop/renderer/screens/protection/calling-hours/week.ts';
import { addAll, describeAdded, readNumbers } from '../../../desktop/renderer/screens/protection/do-not-call/pasted-numbers.ts';
import { describeHours, describeOpening, describeReasons } from '../../../desktop/renderer/screens/protection/numbers/check-text.ts';

const workdays = ['mon', 'tue', 'wed', 'thu', 'fri'] as const;
const rule = (prefix: string, from: string, to: string, days: readonly Weekday[] = workdays): HoursRule => ({
  prefix,
  days: [...days],
  from,
  to,
});

describe('a week of calling hours', () => {
  const formatHours = (rules: HoursRule[], day: number) => toWeeks(rules).map(({ days }) => formatWindows(days[day]?.windows ?? []));

  it('shows the windows of each day, and closed days', () => {
    const rules = [rule('', '14:00', '20:00'), rule('', '10:00', '13:00')];
    expect(formatHours(rules, 0)).to.deep.equal(['10:00–13:00, 14:00–20:00']);
    expect(formatHours(rules, 6)).to.deep.equal(['Closed']);
  });

  it('joins windows that overlap or follow each other', () => {
    expect(formatHours([rule('', '09:00', '12:00'), rule('', '12:00', '15:00'), rule('', '14:00', '24:00')], 0)).to.deep.equal([
      '09:00–24:00',
    ]);
  });

  it('lists the rules without a prefix first, and groups prefixes that have the same hours', () => {
    const weeks = toWeeks([
      rule('+1305', '08:00', '20:00'),
      rule('+1', '08:00', '21:00'),
      rule('+1239', '08:00', '20:00'),
      rule('', '09:00', '20:00'),
    ]);
    expect(weeks.map(({ prefixes }) => describePrefixes(prefixes, true))).to.deep.equal([
      'All other numbers',
      'Numbers that start with +1',
      'Numbers that start with +1239, +1305',
    ]);
  });

  it('lists dates in order', () => {
    const dates = describeDates([
      { prefix: '', date: '2027-01-01', closed: true },
      { prefix: '+49', date: '2026-12-24', from: '09:00', to: '12:00' },
    ]);
    expect(dates.map(({ date, text }) => `${date}: ${text}`)).to.deep.equal(['24 Dec 2026: 09:00–12:00, for +49', '1 Jan 2027: Closed']);
  });

  it('says if some numbers may be called at any time', () => {
    expect(leavesNumbersOpen([rule('+49', '09:00', '20:00'), { prefix: '', date: '2026-12-25', closed: true }])).to.equal(true);
    expect(leavesNumbersOpen([rule('', '09:00', '20:00')])).to.equal(false);
    expect(leavesNumbersOpen([])).to.equal(false);
  });
});

describe('pasted numbers', () => {
  it('are the first cells of all lines, each once, without a header', () => {
    expect(readNumbers('Phone;Name\r\n+49 30 1234;Ada\n\n"+49 30 5678",Grace\n+49 30 1234')).to.deep.equal(['+49 30 1234', '+49 30 5678']);
    const exported = csvStart + csvRow(['Number', 'For']) + csvRow(['+49301234', 'Blue Clinic']) + completeLine(1);
    expect(readNumbers(exported)).to.deep.equal(['+49301234']);
  });

  it('are sent in several requests if there are many, and the counts are added', async () => {
    const sent: number[] = [];
    const numbers = Array.from({ length: 250 }, (_, index) => `+4930${1_000_000 + index}`);
    const result = await addAll(numbers, async (part) => {
      sent.push(part.length);
      return { ok: true, value: { added: part.length - 1, known: 1, beingDialed: 1 } };
    });
    expect(sent).to.deep.equal([100, 100, 50]);
    expect(result.ok && describeAdded(result.value)).to.equal(
      'Added 247 numbers. 3 numbers were already on the list. 3 calls to these numbers are being dialed now and can’t be stopped.',
    );
  });

  it("are quoted in the error if they're invalid", async () => {
    const errors = [{ path: 'phones.1', message: 'Must be a valid phone number.' }];
    const failure = { kind: 'refused', code: 'invalid', detail: 'Invalid.', errors, retryAfterSeconds: null } as const;
    const result = await addAll(['+493012345678', '12'], async () => ({ ok: false, failure: { ...failure, errors: [...errors] } }));
    expect(!result.ok && result.failure.kind === 'refused' && result.failure.errors).to.deep.equal([
      { path: 'phones', message: '12: Must be a valid phone number.' },
    ]);
  });

  it('are reported as added, together with a call to them that can’t be stopped', () => {
    expect(describeAdded({ added: 2, known: 0, beingDialed: 0, notValid: 1 })).to.equal(
      'Added 2 numbers. 1 number isn’t valid today, but may be old or new.',
    );
    expect(describeAdded({ added: 1, known: 0, beingDialed: 1 })).to.equal(
      'Added 1 number. 1 call to this number is being dialed now and can’t be stopped.',
    );
  });
});

describe('the text about a checked number', () => {
  const checked: CheckedNumberView = {
    ...{ phone: '+12085551234', allowed: false, reasons: [], kind: 'ordinary', country: 'US', entries: [] },
    ...{ zones: 2, zoneNames: ['America/Boise', 'America/Los_Angeles'], rules: [rule('', '09:00', '20:00')], rulesFrom: null },
  };

  it('shows that several zones are possible', () => {
    expect(describeHours(checked)).to.equal('between 09:00 and 20:00 in each of 2 possible zones');
  });

  it('names a known zone', () => {
    expect(describeHours({ ...checked, zones: 1, zoneNames: ['Europe/Berlin'] })).to.equal('between 09:00 and 20:00 in Europe/Berlin');
    expect(describeHours({ ...checked, rules: [] })).to.equal(null);
  });

  it("says that hours differ by day, that they're open on some dates only, or that they're never open", () => {
    const closed: HoursRule = { prefix: '', days: [...weekdays], closed: true };
    const holiday = { prefix: '', date: '2026-12-25' };
    const describe = (...rules: HoursRule[]) => describeHours({ ...checked, zones: 1, zoneNames: ['Europe/Berlin'], rules });
    const [monday, tuesday] = [rule('', '09:00', '20:00', ['mon']), rule('', '10:00', '20:00', ['tue'])];
    expect(describe(monday, tuesday)).to.equal('different hours on different days in Europe/Berlin');
    expect(describe(closed, { ...holiday, from: '09:00', to: '12:00' })).to.equal('only on some dates in Europe/Berlin');
    expect(describe(closed, { ...holiday, closed: true })).to.equal('never in Europe/Berlin');
  });

  it("says when hours open in the recipient's zone, if it's known", () => {
    const opensAt = '2026-11-28T09:00:00.000Z';
    expect(describeOpening(opensAt, ['Europe/Berlin'], 'Asia/Tokyo')).to.equal('28 Nov 2026, 10:00 Europe/Berlin');
    expect(describeOpening(opensAt, checked.zoneNames, 'Asia/Tokyo')).to.equal('28 Nov 2026, 18:00 Asia/Tokyo');
  });

  it('explains each reason in a sentence', () => {
    const rulesFrom = { kind: 'account', id: 'a', name: 'Blue Clinic' } as const;
    const opensAt = '2026-11-24T09:00:00.000Z';
    expect(describeReasons({ ...checked, reasons: ['outside-calling-hours'], rulesFrom, opensAt }, 'UTC')).to.deep.equal([
      'It’s outside the calling hours of the account Blue Clinic. A call would be held until they open.',
    ]);
    expect(describeReasons({ ...checked, reasons: ['number-kind', 'country'], kind: 'premium-rate' }, 'UTC')).to.deep.equal([
      'Premium-rate numbers can’t be called.',
      'Numbers in United States can’t be called.',
    ]);
    const about = { id: 'e', phone: '+12012000100', note: null, source: 'console', call: null, createdBy: null, endsAt: null } as const;
    const entry = { ...about, scope: rulesFrom, reason: 'asked', createdAt: '2026-11-24T23:30:00.000Z' } as const;
    expect(describeReasons({ ...checked, reasons: ['do-not-call'], entries: [entry] }, 'Europe/Berlin')[0]).to.contain('since 25 Nov 2026');
    expect(describeReasons({ ...checked, reasons: ['unknown-time-zone'], zones: 0 }, 'UTC')[0]).to.contain('time zone is unknown');
  });
});

describe('the text about a held call', () => {
  const heldUntil = '2026-11-24T08:00:00.000Z';

  it('names the time and the zone', () => {
    expect(describeHeld({ heldUntil }, 'Europe/Berlin')).to.equal('held until 24 Nov 2026, 09:00 Europe/Berlin');
  });

  it("shows the recipient's local time if the zone is known", () => {
    const call = { heldUntil, heldZone: 'America/New_York' };
    expect(describeHeld(call, 'Europe/Berlin')).to.equal('held until 24 Nov 2026, 03:00 America/New_York');
  });

  it("is shown with the provider's reason if the call will be retried", () => {
    const retried = { heldUntil, detail: 'The provider returned 503.' };
    expect(describeState(retried, 'Europe/Berlin')).to.equal('held until 24 Nov 2026, 09:00 Europe/Berlin · The provider returned 503.');
  });

  it("is omitted if the call isn't held", () => {
    expect(describeState({ heldUntil: null, detail: 'The provider returned 503.' }, 'Europe/Berlin')).to.equal(
      'The provider returned 503.',
    );
    expect(describeState({ heldUntil: null, detail: null }, 'Europe/Berlin')).to.equal(null);
  });
});
