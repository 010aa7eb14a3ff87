import { mock } from 'node:test';
import { expect } from 'chai';
import { hasOwnZone, ownZone, readClock } from '../../../desktop/renderer/state/clock.ts';
import { parseDay, parseTime, today } from '../../../desktop/renderer/state/days.ts';

describe('a typed day', () => {
  const days: readonly (readonly [string, string | null])[] = [
    ['2027-01-31', '2027-01-31'],
    ['31 Jan 2027', '2027-01-31'],
    ['31. january 2027', '2027-01-31'],
    ['jan 31, 2027', '2027-01-31'],
    ['31.1.2027', '2027-01-31'],
    ['31/01/2027', '2027-01-31'],
    ['01/31/2027', '2027-01-31'],
    ['31012027', '2027-01-31'],
    ['5/5/2027', '2027-05-05'],
    ['29 Feb 2027', null],
    ['31 Jan 27', null],
    ['3/4/2027', null],
    ['31 jan', `${new Date().getFullYear()}-01-31`],
    ['Jan 31st', null],
    ['soon', null],
    ['', null],
  ];
  for (const [typed, day] of days) {
    it(`is ${day ?? 'refused'} for "${typed}"`, () => {
      expect(parseDay(typed)).to.equal(day);
    });
  }

  it('is the next one if it has no year and can’t be in the past', () => {
    const [year] = today().split('-').map(Number);
    expect(['1 Jan', '31.12.'].map((typed) => parseDay(typed, `${year}-01-02`))).to.deep.equal([
      `${Number(year) + 1}-01-01`,
      `${year}-12-31`,
    ]);
  });
});

describe('a typed time of day', () => {
  it('can be written in several ways', () => {
    const typed = ['9', '9:30', '0930', '9.30 am', '9 pm', '12 am', '24:00', '24:01', '9:3', '13 pm', 'noon'];
    const times = ['09:00', '09:30', '09:30', '09:30', '21:00', '00:00', '24:00', null, null, null, null];
    expect(typed.map(parseTime)).to.deep.equal(times);
  });
});

describe("the computer's time zone", () => {
  before(() => Object.assign(globalThis, { window: { callkey: { readClockLead: async () => null } } }));
  after(() => {
    Reflect.deleteProperty(globalThis, 'window');
  });
  afterEach(() => mock.restoreAll());

  for (const [reported, shown, isKnown] of [
    ['Asia/Tokyo', 'Asia/Tokyo', true],
    ['Etc/Unknown', 'UTC', false],
    ['Mars/Olympus_Mons', 'UTC', false],
    [undefined, 'UTC', false],
  ] as const) {
    it(`is ${shown} if the computer reports ${reported}`, () => {
      mock.method(Intl.DateTimeFormat.prototype, 'resolvedOptions', () => ({ timeZone: reported }));
      readClock();
      mock.restoreAll();
      expect([ownZone.value, hasOwnZone.value]).to.deep.equal([shown, isKnown]);
    });
  }
});
