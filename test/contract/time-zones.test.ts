import { expect } from 'chai';
import { canonicalTimeZone, describeTimeZone, findTimeZone } from '#contract/time-zones.ts';
import { zoneNames } from '#contract/zone-names.ts';

const supported = Intl.supportedValuesOf('timeZone');
/** Every name in the generated table. */
const names = zoneNames
  .trim()
  .split('\n')
  .flatMap((line) =>
    line
      .replace(/^.*\|/, '')
      .split(' ')
      .map((name) => line.slice(0, line.indexOf('|')) + name),
  );
const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
const threeLetters = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));

describe('a time zone', () => {
  it('can have any name in the time zone database, in upper or lower case, and is spelled as in the database', () => {
    expect(names).to.include.members(['Europe/Berlin', 'Asia/Calcutta', 'US/Pacific', 'Etc/GMT+5', 'UTC', 'EST', 'Zulu', 'GB', 'Eire']);
    for (const name of [...names, ...supported])
      expect([name, name.toLowerCase(), name.toUpperCase()].map(findTimeZone)).to.deep.equal([name, name, name]);
  });

  it("can't be an abbreviation that isn't in the database, although the runtime knows some", () => {
    const accepted = threeLetters.filter((name) => findTimeZone(name) !== null);
    expect(accepted.join(' ')).to.equal('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET');
    expect(canonicalTimeZone('BST')).to.equal('Asia/Dhaka');
  });

  for (const text of [
    '',
    'Mars/Olympus',
    '+02:00',
    'GMT+2',
    'local',
    'Europe/Berlin ',
    'SystemV/PST8PDT',
    'Etc/Unknown',
    'Factory',
    'PST',
    'CEST',
    // The first letter of the city is the sign for Kelvin.
    'Asia/\u212Aolkata',
  ]) {
    it(`can't be ${JSON.stringify(text)}`, () => expect(findTimeZone(text)).to.equal(null));
  }

  it("has the same runtime's name for all of its names and spellings", () => {
    const spellings = ['Asia/Kolkata', 'ASIA/KOLKATA', 'asia/calcutta', 'Asia/Calcutta', 'asia/kolkata'];
    expect(new Set(spellings.map(canonicalTimeZone)).size).to.equal(1);
    for (const name of supported)
      expect([name, name.toLowerCase(), name.toUpperCase()].map(canonicalTimeZone)).to.deep.equal([name, name, name]);
    expect(() => canonicalTimeZone('Mars/Olympus')).to.throw(RangeError);
  });

  for (const [text, likely] of [
    ['BST', 'Europe/London'],
    ['ist', 'Asia/Kolkata, Europe/Dublin, or Asia/Jerusalem'],
    ['CEST', 'Europe/Berlin'],
    ['Vienna', 'Europe/Vienna'],
    ['America/New York', 'America/New_York'],
    ['Asia/Istambul', null],
    ['+02:00', null],
    ['', null],
  ] as const) {
    it(`is ${likely === null ? 'explained with an example' : `likely to be ${likely}`} for ${JSON.stringify(text)}`, () => {
      expect(describeTimeZone(text)).to.equal(`Must be an IANA time zone, such as ${likely ? `${likely} for ${text}` : 'Europe/Berlin'}.`);
    });
  }
});
