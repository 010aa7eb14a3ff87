import { expect } from 'chai';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import { describePrefixes, describeRules, formatWindows, toWeeks } from '#contract/protection/describe-hours.ts';
import { rule } from '../support/hours-rules.ts';

describe('calling hours in words', () => {
  const formatHours = (rules: HoursRule[], day: number) => toWeeks(rules).map(({ days }) => formatWindows(days[day]?.windows ?? []));

  it('show the windows of each day, and closed days', () => {
    const rules = [rule('', '14:00', '20:00'), rule('', '10:00', '13:00')];
    expect(formatHours(rules, 0)).to.deep.equal(['10:00–13:00, 14:00–20:00']);
    expect(formatHours(rules, 6)).to.deep.equal(['Closed']);
  });

  it('list the rules without a prefix first, and group prefixes that have the same hours', () => {
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

  for (const [rules, sentence] of [
    [
      [rule('+49', '09:00', '12:00'), rule('+49', '13:00', '18:00')],
      '+49: Monday to Friday 09:00–12:00 and 13:00–18:00; all other numbers: at any time',
    ],
    [
      [rule('', '09:00', '20:00'), rule('+1', '08:00', '21:00'), { prefix: '', days: ['sat'], from: '10:00', to: '14:00' }],
      '+1: Monday to Friday 08:00–21:00; all other numbers: Monday to Friday 09:00–20:00, Saturday 10:00–14:00',
    ],
    [
      [
        { prefix: '+49', date: '2027-01-01', closed: true },
        { prefix: '', date: '2026-12-24', from: '09:00', to: '12:00' },
      ],
      'All numbers: at any time. Instead, on 2026-12-24: 09:00–12:00; 2027-01-01: closed, for +49',
    ],
    [[{ prefix: '', days: ['mon', 'wed'], closed: true }], 'All numbers: never'],
    [[], 'All numbers: at any time'],
    [[rule('', '09:00', '12:00'), rule('', '12:00', '15:00'), rule('', '14:00', '24:00')], 'All numbers: Monday to Friday 09:00–24:00'],
    [[rule('', 'xx', '10:00'), rule('', '', '10:00'), rule('', '14:00', '10:00')], 'All numbers: never'],
    [[rule('', '14:00', '10:00'), rule('', '15:00', '18:00')], 'All numbers: Monday to Friday 15:00–18:00'],
  ] as [HoursRule[], string][]) {
    it(`are described as “${sentence}”`, () => expect(describeRules(rules)).to.equal(sentence));
  }

  it('of which there are hundreds are described by the shortest prefixes and the next dates, and the others are counted', () => {
    const hours = (prefix: number) => `${String(prefix % 24).padStart(2, '0')}:00`;
    const prefixes = Array.from({ length: 20 }, (_, n) => rule(`+49${n}`, hours(n), hours(n + 1)));
    const sameHours = Array.from({ length: 200 }, (_, n) => rule(`+1${200 + n}`, '08:00', '20:00'));
    const dates = Array.from({ length: 200 }, (_, n): HoursRule => ({ prefix: '', date: `${2027 + n}-01-01`, closed: true }));
    const workday = (text: string) => `Monday to Friday ${text}`;
    expect(describeRules([...sameHours, ...prefixes, rule('', '09:00', '20:00'), ...dates])).to.equal(
      [
        `+492: ${workday('02:00–03:00')}; +491: ${workday('01:00–02:00')}; +490: ${workday('00:00–01:00')}`,
        `217 more prefixes: other hours; all other numbers: ${workday('09:00–20:00')}. Instead, on 2027-01-01: closed`,
        '2028-01-01: closed; 2029-01-01: closed; and 197 more dates',
      ].join('; '),
    );
  });
});
