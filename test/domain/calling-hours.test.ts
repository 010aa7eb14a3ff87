import { expect } from 'chai';
import fc from 'fast-check';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { findTimeZone } from '#contract/time-zones.ts';
import { instant, type Millis } from '../../core/domain/instant.ts';
import { findOpening, selectRules } from '../../core/domain/protection/calling-hours.ts';
import { defaultRules, judge } from '../../core/domain/protection/judge.ts';
import { onlyZone } from '../../core/domain/protection/numbers.ts';
import { at } from '../support/clock.ts';
import { findClockChanges } from '../support/clock-changes.ts';
import { daily, rule } from '../support/hours-rules.ts';
import { runs } from '../support/runs.ts';

type Question = { rules: HoursRule[]; phone?: string; zones: readonly string[]; from: string };

/** Returns the next opening in UTC. */
function open({ rules, phone = '+493012345678', zones, from }: Question): string | null {
  const opening = findOpening({ rules: selectRules(rules, phone), zones, from: at(from) });
  return typeof opening === 'number' ? new Date(opening).toISOString() : opening;
}

const minute = 60_000;
const hour = 60 * minute;
const zones = Intl.supportedValuesOf('timeZone');

describe('calling hours', () => {
  const berlin = { rules: [rule('', '09:00', '20:00')], zones: ['Europe/Berlin'] };
  const cases: [title: string, question: Question, opening: string | null][] = [
    ['are open from the first minute', { ...berlin, from: '2026-11-23T08:00:00Z' }, 'open'],
    ['open at the start of the window', { ...berlin, from: '2026-11-23T07:59:59.999Z' }, '2026-11-23T08:00:00.000Z'],
    ['are open until the last minute', { ...berlin, from: '2026-11-23T18:58:59.999Z' }, 'open'],
    ['are closed in the last minute', { ...berlin, from: '2026-11-23T18:59:00Z' }, '2026-11-24T08:00:00.000Z'],
    ['skip days without a rule', { ...berlin, from: '2026-11-27T19:30:00Z' }, '2026-11-30T08:00:00.000Z'],
    [
      'are open through midnight',
      { ...berlin, rules: [daily('20:00', '24:00'), daily('00:00', '06:00')], from: '2026-11-23T22:59:30Z' },
      'open',
    ],
    [
      'are open where one window follows another',
      { ...berlin, rules: [daily('09:00', '12:00'), daily('12:00', '20:00')], from: '2026-11-23T10:59:30Z' },
      'open',
    ],
    [
      'open in overlapping windows',
      { ...berlin, rules: [daily('10:00', '11:00'), daily('09:00', '20:00')], from: '2026-11-23T10:30:00Z' },
      'open',
    ],
    [
      "are open when all of a number's zones are",
      { ...berlin, zones: ['America/New_York', 'America/Los_Angeles'], from: '2026-11-23T14:00:00Z' },
      '2026-11-23T17:00:00.000Z',
    ],
    [
      'never open without a common window',
      { ...berlin, rules: [daily('09:00', '12:00')], zones: ['Europe/Berlin', 'Asia/Tokyo'], from: '2026-11-23T08:00:00Z' },
      null,
    ],
    ['never open without a zone', { ...berlin, zones: [], from: '2026-11-23T08:00:00Z' }, null],
  ];
  for (const [title, question, opening] of cases) it(title, () => expect(open(question)).to.equal(opening));

  it("are searched only once per minute, even if they're never open", () => {
    let searched = 0;
    const values = ['Europe/Berlin', 'Asia/Tokyo'];
    const counted = Object.assign([...values], {
      [Symbol.iterator]: () => {
        searched++;
        return values.values();
      },
    });
    const rules = [daily('09:00', '12:00')];
    const search = (time: string) => findOpening({ rules, zones: counted, from: at(time) });
    expect(search('2026-11-23T08:00:30Z')).to.equal(null);
    const once = searched;
    for (const second of ['00', '30', '59.999']) expect(search(`2026-11-23T08:00:${second}Z`)).to.equal(null);
    expect([once > 0, searched]).to.deep.equal([true, once]);
    search('2026-11-23T08:01:00Z');
    expect(searched).to.be.greaterThan(once);
  });

  it('are looked up only once for all spellings and names of a time zone', () => {
    const rules = { ...defaultRules, hours: [daily('09:00', '20:00')] };
    const now = at('2026-11-23T05:00:00Z');
    const names = ['America/Argentina/Buenos_Aires', 'america/buenos_aires', 'AMERICA/ARGENTINA/BUENOS_AIRES', 'America/buenos_aireS'];
    const judgeIn = (timeZone: string) => {
      expect(findTimeZone(timeZone)).not.to.equal(null);
      const call = { phone: '+493012345678', timeZone, notBefore: null, notAfter: null };
      expect(judge(rules, call, now, now)).to.deep.equal({ kind: 'held', until: at('2026-11-23T12:00:00Z') });
    };
    for (const name of names.slice(0, 2)) judgeIn(name);
    const { DateTimeFormat } = Intl;
    let lookups = 0;
    Intl.DateTimeFormat = new Proxy(DateTimeFormat, {
      construct(target, values) {
        lookups++;
        return Reflect.construct(target, values);
      },
    });
    try {
      for (const name of names) judgeIn(name);
    } finally {
      Intl.DateTimeFormat = DateTimeFormat;
    }
    expect(lookups).to.equal(0);
    expect(new Set(names.map(onlyZone)).size).to.equal(1);
  });

  describe('rules for dates', () => {
    const christmas = { prefix: '', date: '2026-12-25', closed: true } as const;
    const german = rule('+49', '09:00', '20:00');
    const from = '2026-12-25T10:00:00Z';
    const inBerlin = { zones: ['Europe/Berlin'], from };

    it('can close a date even if weekly rules have a longer prefix', () => {
      expect(open({ ...inBerlin, rules: [german, christmas] })).to.equal('2026-12-28T08:00:00.000Z');
    });
    it('apply only if no other rule for that date has a longer matching prefix', () => {
      const exception = { prefix: '+49', date: '2026-12-25', from: '10:00', to: '14:00' };
      expect(open({ ...inBerlin, rules: [german, christmas, exception] })).to.equal('open');
    });
    it("don't limit other days", () => {
      expect(open({ ...inBerlin, rules: [christmas] })).to.equal('2026-12-25T23:00:00.000Z');
      expect(open({ ...inBerlin, rules: [christmas], from: '2026-12-24T03:00:00Z' })).to.equal('open');
    });
    it('replace the hours of that date', () => {
      expect(open({ ...inBerlin, rules: [german, { ...christmas, closed: undefined, from: '18:00', to: '19:00' }] })).to.equal(
        '2026-12-25T17:00:00.000Z',
      );
    });
  });

  it('are defined only by the rules with the longest matching prefix', () => {
    const rules = [daily('09:00', '20:00'), daily('10:00', '11:00', '+49'), daily('06:00', '22:00', '+4930')];
    expect(selectRules(rules, '+498912345678')).to.deep.equal([rules[1]]);
    expect(selectRules(rules, '+493012345678')).to.deep.equal([rules[2]]);
    expect(selectRules(rules, '+33123456789')).to.deep.equal([rules[0]]);
    expect(selectRules(rules.slice(1), '+33123456789')).to.deep.equal([]);
  });

  describe('in every zone, for five years', () => {
    const rules = [rule('', '09:00', '13:00'), daily('14:30', '20:00'), rule('', '01:15', '02:45', ['sun'])];
    const start = at('2026-01-01T00:00:00Z');
    const clocks = new Map(
      zones.map((timeZone) => [
        timeZone,
        new Intl.DateTimeFormat('en-US', { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
      ]),
    );

    /** Whether a local time is within a window, by the runtime's own calendar. */
    function isWithin(instant: number, zone: string): boolean {
      const [day = '', time = ''] = clocks.get(zone)?.format(instant).split(' ') ?? [];
      const weekday = day.toLowerCase().slice(0, 3);
      return rules.some(({ days = [], from = '', to = '' }) => days.some((each) => each === weekday) && from <= time && time < to);
    }
    const isOpen = (instant: number, zone: string) => isWithin(instant, zone) && isWithin(instant + minute, zone);

    /** Checks that the zone is open at the opening, and closed at several times before it. */
    function check(zone: string, from: Millis): void {
      const opening = findOpening({ rules: selectRules(rules, '+493012345678'), zones: [zone], from });
      const opensAt = opening === 'open' ? from : (opening ?? Number.NaN);
      const label = `${zone} from ${new Date(from).toISOString()}`;
      expect(isOpen(opensAt, zone), label).to.equal(true);
      if (opensAt === from) return;
      for (const before of [opensAt - 1, opensAt - hour / 2, opensAt - hour, from, (from + opensAt) / 2]) {
        if (before >= from) expect(isOpen(before, zone), label).to.equal(false);
      }
    }

    it('open at the next minute in which everyone may be called', () => {
      const days = fc.integer({ min: 0, max: 5 * 365 * 24 * 60 - 1 });
      fc.assert(
        fc.property(fc.constantFrom(...zones), days, (zone, minutes) => check(zone, instant(start + minutes * minute + 30_000))),
        runs(4_000),
      );
    });

    it('open correctly around every clock change', () => {
      for (const zone of zones) {
        for (const change of findClockChanges(zone, start, at('2031-01-01T00:00:00Z')))
          for (const hours of [-26, -0.5, -1 / 60, 0]) check(zone, instant(change + hours * hour));
      }
    });
  });
});
