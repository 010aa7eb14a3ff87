import { expect } from 'chai';
import { Settings } from 'luxon';
import { endOfDay, startOfDay } from '#contract/calendar.ts';
import { customRange, type Expiration, expiresSoon, expiryInstant, isExpired, isWithin } from '#contract/expiry.ts';
import { at } from '../support/clock.ts';
import { findClockChanges } from '../support/clock-changes.ts';

const zones = Intl.supportedValuesOf('timeZone');

/** Cached by zone, because creating a format takes as long as using it a hundred times. */
const formats = new Map(zones.map((timeZone) => [timeZone, new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })]));

const toIso = (instant: number | null) => instant && new Date(instant).toISOString();

/** Returns the calendar day in a zone, from the runtime's own tables instead of the code under test. */
function localDay(millis: number, timeZone: string): string {
  return formats.get(timeZone)?.format(millis) ?? '';
}

const choice = (kind: string): Expiration => (kind === 'none' ? { kind } : { kind: 'years', years: Number(kind) as 1 });

describe('expiry', () => {
  describe('the range for a custom date', () => {
    for (const [now, zone, earliest, latest] of [
      ['2026-11-21T09:00:00Z', 'Europe/Berlin', '2026-11-22', '2031-11-20'],
      ['2026-11-21T23:30:00Z', 'Europe/Berlin', '2026-11-23', '2031-11-21'],
      ['2026-11-21T23:30:00Z', 'America/New_York', '2026-11-22', '2031-11-20'],
      ['2026-11-21T23:30:00Z', 'Pacific/Kiritimati', '2026-11-23', '2031-11-21'],
      ['2028-02-29T12:00:00Z', 'UTC', '2028-03-01', '2033-02-27'],
    ] as const) {
      it(`starts tomorrow and ends the day before five years from now, in the zone: at ${now} in ${zone}`, () => {
        expect(customRange(at(now), zone)).to.deep.equal({ earliest, latest });
      });
    }

    it('includes its first and last day', () => {
      const range = { earliest: '2026-11-22', latest: '2031-11-20' };
      expect(['2026-11-21', '2026-11-22', '2031-11-20', '2031-11-21'].map((day) => isWithin(day, range))).to.deep.equal([
        false,
        true,
        true,
        false,
      ]);
    });
  });

  describe('expiry after whole years', () => {
    const cases: [string, string, string][] = [
      ['2026-11-21T12:00:00Z', '1', '2027-11-21'],
      ['2026-11-21T12:00:00Z', '4', '2030-11-21'],
      ['2026-11-21T12:00:00Z', '5', '2031-11-20'],
      ['2028-02-29T12:00:00Z', '1', '2029-02-28'],
      ['2028-02-29T12:00:00Z', '4', '2032-02-29'],
      ['2028-02-29T12:00:00Z', '5', '2033-02-27'],
      ['2028-03-01T12:00:00Z', '5', '2033-02-28'],
    ];
    for (const [now, years, day] of cases) {
      it(`is ${day} if a key is created on ${now.slice(0, 10)} with years: ${years}`, () => {
        expect(toIso(expiryInstant(choice(years), at(now), 'UTC'))).to.equal(`${day}T23:59:59.999Z`);
      });
    }
  });

  it('is null for a key without expiration', () => {
    expect(expiryInstant(choice('none'), at('2026-11-21T12:00:00Z'), 'UTC')).to.equal(null);
  });

  it('is the end of the chosen day in the chosen zone', () => {
    const end = expiryInstant({ kind: 'custom', date: '2027-01-31' }, at('2026-11-21T12:00:00Z'), 'europe/berlin');
    expect(toIso(end)).to.equal('2027-01-31T22:59:59.999Z');
  });

  it('takes a day that the zone skipped to start with the next day', () => {
    expect(['2011-12-30', '2011-12-31'].map((day) => toIso(startOfDay(day, 'Pacific/Apia')))).to.deep.equal([
      '2011-12-30T10:00:00.000Z',
      '2011-12-30T10:00:00.000Z',
    ]);
  });

  it("is independent of the machine's time zone", () => {
    // 30 December 2011 doesn't exist in this zone, so it would be skipped if the machine's zone mattered.
    Settings.defaultZone = 'Pacific/Apia';
    try {
      expect(toIso(endOfDay('2011-12-29', 'Europe/Berlin'))).to.equal('2011-12-29T22:59:59.999Z');
      expect(customRange(at('2011-12-29T12:00:00Z'), 'UTC')).to.deep.equal({ earliest: '2011-12-30', latest: '2016-12-28' });
    } finally {
      Settings.defaultZone = 'system';
    }
  });

  it('is the end of the day in every zone, on an ordinary day and on the days around each clock change', function () {
    this.timeout(120_000);
    for (const zone of zones) {
      const changes = findClockChanges(zone, at('2026-11-21T00:00:00Z'), at('2030-11-21T00:00:00Z'));
      const around = changes.flatMap((change) => [-1, 0, 1].map((days) => localDay(change + days * 24 * 3_600_000, zone)));
      for (const day of new Set(['2026-11-21', ...around])) {
        const end = endOfDay(day, zone);
        expect([zone, day, localDay(end, zone), localDay(end + 1, zone) > day]).to.deep.equal([zone, day, day, true]);
      }
    }
  });

  it("comes only after the key's expiration time: in that millisecond, the key still works", () => {
    expect([999, 1_000, 1_001].map((now) => isExpired(1_000, now))).to.deep.equal([false, false, true]);
    expect(isExpired(null, Number.MAX_SAFE_INTEGER)).to.equal(false);
  });

  it("is soon if it's at most thirty days away or has passed", () => {
    const thirtyDays = 30 * 86_400_000;
    expect([thirtyDays + 1, thirtyDays, 0, -1].map((left) => expiresSoon(1_000 + left, 1_000))).to.deep.equal([false, true, true, true]);
    expect(expiresSoon(null, Number.MAX_SAFE_INTEGER)).to.equal(false);
  });
});
