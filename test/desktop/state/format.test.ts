import { expect } from 'chai';
import { DateTime } from 'luxon';
import { counted } from '#contract/text/count.ts';
import {
  formatAge,
  formatDay,
  formatDuration,
  formatInstant,
  formatMinute,
  formatPast,
  formatRelative,
  readDecimal,
  readWhole,
  shorten,
  sortAfterPress,
  sorted,
  toCsv,
} from '../../../desktop/renderer/state/format.ts';

describe('a typed number', () => {
  it('is read as a whole number, with thousands separated by commas or points', () => {
    const typed = ['20', ' 10,000 ', '10.000', '1,234,567', '0', '1,5', '1,0000', '0,125', 'many'];
    expect(typed.map(readWhole)).to.deep.equal([20, 10_000, 10_000, 1_234_567, 0, Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
  });

  it('is read as a decimal number, in which only a comma before three digits separates thousands', () => {
    const typed = ['0,5', '0.5', '1.125', '0,125', '1,000', 'many'];
    expect(typed.map(readDecimal)).to.deep.equal([0.5, 0.5, 1.125, 0.125, 1_000, Number.NaN]);
  });
});

describe('a relative time', () => {
  const now = DateTime.fromISO('2026-11-21T12:00:00Z');
  for (const [seconds, text] of [
    [0, 'just now'],
    [-44, 'just now'],
    [14, 'just now'],
    [15, 'in a moment'],
    [44, 'in a moment'],
    [45, 'in 1 minute'],
    [-45, '1 minute ago'],
    [-119, '1 minute ago'],
    [-3_600, '1 hour ago'],
    [86_399, 'in 23 hours'],
    [86_400, 'in 1 day'],
    [-3 * 86_400, '3 days ago'],
    [400 * 86_400, 'in 1 year, 1 month'],
    [-731 * 86_400, '2 years ago'],
  ] as const) {
    it(`is "${text}" at ${seconds} s`, () => {
      expect(formatRelative(now.plus({ seconds }), now)).to.equal(text);
    });
  }

  it('is never in the future for a past time, even if the clock is behind', () => {
    const texts = [-60, 0, 30, 59].map((seconds) => formatPast(now.plus({ seconds }), now));
    expect(texts).to.deep.equal(['1 minute ago', 'just now', 'just now', 'just now']);
  });
});

describe('formatting', () => {
  it('shows an exact time with seconds and a zone, and the day in the given zone', () => {
    const instant = DateTime.fromISO('2027-01-31T22:59:59Z', { zone: 'Europe/Berlin' });
    expect(formatInstant(instant)).to.equal('31 Jan 2027, 23:59:59 Europe/Berlin');
    expect(formatDay(instant.setZone('Pacific/Auckland'))).to.equal('1 Feb 2027');
  });

  it('shows a date with hours and minutes', () => {
    expect(formatMinute(DateTime.fromISO('2026-09-03T09:05:59Z', { zone: 'utc' }))).to.equal('3 Sep 2026, 09:05');
  });

  it('shows durations in minutes and seconds', () => {
    expect([0, 4_400, 59_600, 136_000, 3_600_000].map(formatDuration)).to.deep.equal(['0:00', '0:04', '1:00', '2:16', '60:00']);
  });

  it('shows an age in steps of five seconds, then in minutes', () => {
    expect([-1, 4_999, 5_000, 14_999, 60_000, 119_999].map(formatAge)).to.deep.equal([
      'just now',
      'just now',
      '5 s ago',
      '10 s ago',
      '1 min ago',
      '1 min ago',
    ]);
  });

  it('starts a CSV file with a byte order mark for Excel, and its head', () => {
    expect(toCsv(['x', 'y'], [['1', '2']])).to.equal('\ufeff"x","y"\r\n"1","2"\r\n');
  });

  it('uses a singular noun only if the count is one', () => {
    expect([0, 1, 2].map((count) => counted(count, 'key'))).to.deep.equal(['0 keys', '1 key', '2 keys']);
    expect(counted(2, 'match', 'matches')).to.equal('2 matches');
  });

  it('cuts a text that a message repeats after 40 characters', () => {
    expect(shorten('x'.repeat(40))).to.equal('x'.repeat(40));
    expect(shorten('📞'.repeat(41))).to.equal(`${'📞'.repeat(39)}…`);
  });
});

describe('a sorted column', () => {
  const rows = ['Key 10', 'key 2', null, 'Äpfel', 'Key 2'];

  it('sorts text in natural order, and keeps equal rows in order', () => {
    expect(sorted(rows, (row) => row, false)).to.deep.equal(['Äpfel', 'key 2', 'Key 2', 'Key 10', null]);
  });

  it('puts missing values last in either direction', () => {
    expect(sorted([2, null, 1], (row) => row, true)).to.deep.equal([2, 1, null]);
    expect(sorted([2, null, 1], (row) => row, false)).to.deep.equal([1, 2, null]);
  });

  it('starts in its default direction on the first click, and reverses on the second', () => {
    const first = sortAfterPress({ column: 'name', isDescending: false }, 'created', true);
    expect(first).to.deep.equal({ column: 'created', isDescending: true });
    expect(sortAfterPress(first, 'created', true)).to.deep.equal({ column: 'created', isDescending: false });
  });
});
