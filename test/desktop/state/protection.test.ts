import { expect } from 'chai';
import { completeLine, csvRow, csvStart } from '#contract/files/csv.ts';
import { doNotCallHead } from '#contract/files/table.ts';
import { type HoursRule, weekdays } from '#contract/protection/calling-hours.ts';
import type { CheckedNumberView } from '#contract/protection/protection.ts';
import { describeHeld, describeState } from '../../../desktop/renderer/state/calls.ts';
import { addChecked, describeAdded, readFile, readNumbers } from '../../../desktop/renderer/state/pasted-numbers.ts';
import {
  describeHours,
  describeReasons,
  describeWaiting,
  distinctRules,
  formatForPerson,
  nextWindow,
  summarizeHours,
} from '../../../desktop/renderer/state/protection.ts';
import { rule } from '../../support/hours-rules.ts';

describe('calling hours', () => {
  it('are summarized without the dates that are still being typed', () => {
    const closed = ['2026-12-25', '2026-12'].map((date): HoursRule => ({ prefix: '', date, closed: true }));
    expect(summarizeHours(closed)).to.equal(
      'All numbers: at any time. Instead, on 25 Dec 2026: closed. Times are in the time zone of the person being called.',
    );
  });

  it('say each rule once', () => {
    const closed: HoursRule = { prefix: '', date: '2026-12-25', closed: true };
    const sameClosed: HoursRule = { closed: true, date: '2026-12-25', prefix: '' };
    const rules = [rule('+49', '09:00', '12:00'), closed, rule('+49', '13:00', '18:00'), rule('+49', '09:00', '12:00'), sameClosed];
    expect(distinctRules(rules)).to.deep.equal(rules.slice(0, 3));
  });

  it('are continued after a break of an hour, if the day is long enough', () => {
    expect(nextWindow(rule('+49', '09:00', '12:00'))).to.deep.equal(rule('+49', '13:00', '16:00'));
    expect(nextWindow(rule('+49', '09:00', '20:00'))).to.deep.equal(rule('+49', '09:00', '20:00'));
  });
});

describe('pasted numbers', () => {
  const readTexts = (text: string) => readNumbers(text).numbers.map((number) => number.text);
  const add = async (phones: string[]) =>
    ({ ok: true, value: { added: phones.length - 1, known: 1, knownPhones: phones.slice(0, 1), beingDialed: 1 } }) as const;
  const written = (texts: string[]) => ({ numbers: texts.map((text, index) => ({ line: index + 1, text })), problems: [], skipped: [] });

  it('are all parts with a digit between line breaks, commas, semicolons and tabs', () => {
    expect(readTexts('Phone\r\n+49 30 1234, +49 30 1235;+49 30 1236\t+49 30 1237\n\n"\'+49 30 1238"\r="+49 30 1239"')).to.deep.equal([
      ...['+49 30 1234', '+49 30 1235', '+49 30 1236', '+49 30 1237', '+49 30 1238', '+49 30 1239'],
    ]);
    expect(readTexts('０３０\u3000１２３４\n٠٣٠١٢٣٥')).to.deep.equal(['０３０\u3000１２３４', '٠٣٠١٢٣٥']);
    expect(readNumbers('Phone\n+49301234\nnobody').problems).to.deep.equal([{ line: 3, message: 'nobody: Must be a phone number.' }]);
    expect(readNumbers('Ada\n+49301234,x9').numbers).to.deep.equal([
      { line: 2, text: '+49301234' },
      { line: 2, text: 'x9' },
    ]);
  });

  it('are only those in the column for numbers if the text is a table, and other numbers are a problem', () => {
    expect(readTexts('Id;Phone;Since\n1001;+49301234;2026-11-28\n1002;;2026-11-28')).to.deep.equal(['+49301234']);
    const row = ['+49301234', 'Blue Clinic', 'Asked', '', 'console', 'Ada', '2026-11-28T15:34:35.696Z', ''];
    expect(readTexts(csvStart + csvRow(doNotCallHead) + csvRow(row) + completeLine(1))).to.deep.equal(['+49301234']);
    expect(readNumbers('Phone\tName\n+49301234567\t+49301234568').problems).to.deep.equal([
      { line: 2, message: "There's another phone number in column Name: +49301234568" },
    ]);
  });

  it('are sent in several requests if there are many, each once, and the counts are added', async () => {
    const sent: number[] = [];
    const numbers = Array.from({ length: 250 }, (_, index) => `+4930${1_000_000 + index}`);
    const result = await addChecked(written([...numbers, '+4930 1000000', ...numbers]), undefined, async (part) => {
      sent.push(part.length);
      return add(part);
    });
    expect(sent).to.deep.equal([100, 100, 50]);
    expect(result.ok && describeAdded(result.value)).to.equal(
      'Added 247 numbers. 3 numbers were already on the list. 251 numbers were there twice. 3 calls to these numbers are being dialed now and can’t be stopped.',
    );
  });

  it('are all checked before the first one is added, and every invalid one is named with its line, and only its start is quoted', async () => {
    const numbers = written([...Array.from({ length: 200 }, (_, index) => `+4930${1_000_000 + index}`), '9'.repeat(10_000)]);
    const problems = Array.from({ length: 200 }, (_, index) => ({ line: index + 300, message: 'Unclear.' }));
    const result = await addChecked({ ...numbers, problems }, undefined, () => expect.fail('Sent.'));
    const quoted = `Line 201: ${'9'.repeat(39)}…: Must be one phone number, without an extension or other text.`;
    expect(!result.ok && result.failure.kind === 'refused' && result.failure.errors).to.deep.equal([
      { path: 'phones', message: [quoted, ...problems.map(({ line }) => `Line ${line}: Unclear.`)].join('\n') },
    ]);
  });

  it('each get a result, as they were written, and no line is left out; first come those that weren’t simply added', async () => {
    const text = 'Phone\n+49 30 1000000\n+4930 1000001\n\n+52 1 55 1234 5678, 0049301000000';
    const result = await addChecked(readNumbers(text), undefined, add);
    expect(result.ok && result.value.lines).to.deep.equal([
      { line: 1, text: 'Phone', result: 'Skipped: not a number' },
      { line: 2, text: '+49 30 1000000', result: 'Was already on the list' },
      { line: 5, text: '+52 1 55 1234 5678', result: 'Added, but isn’t valid today' },
      { line: 5, text: '0049301000000', result: 'Same number as on line 2' },
      { line: 3, text: '+4930 1000001', result: 'Added' },
    ]);
    expect(readNumbers('Phone;Name\n;Ada\n+49301000000;Zoë').skipped).to.deep.equal([{ line: 2, text: 'Ada' }]);
  });

  it('are reported as added, together with those that aren’t valid and a call to them that can’t be stopped', () => {
    expect(describeAdded({ added: 2, known: 0, beingDialed: 1, notValid: 1, repeated: 0 })).to.equal(
      'Added 2 numbers. 1 number isn’t valid today, but may be old or new. 1 call to these numbers is being dialed now and can’t be stopped.',
    );
  });
});

describe('a file of numbers', () => {
  const read = (content: BlobPart, column = '') => readFile(new File([content], 'list.csv'), column);

  it('is read in any encoding, from the column that its header names, and says what was read', async () => {
    const bytes = new Uint8Array(Buffer.from('\ufeffName\tTelefon\nZoë\t+49 30 1234\nAda\t\n', 'utf16le'));
    expect(await read(bytes)).to.deep.equal({
      ...{ text: '+49 30 1234', note: 'Column Telefon: 1 number, 1 empty.', problem: null, columns: ['Name', 'Telefon'] },
    });
  });

  it('asks for the column if it has numbers in several, or none is named like one for numbers', async () => {
    const several = 'Phone;Mobile\n+49301234567;+49301234568\n';
    const question = await read(several);
    expect([question.text, question.columns]).to.deep.equal([null, ['Phone', 'Mobile']]);
    expect(question.problem).to.contain("Line 2: There's another phone number in column Mobile");
    expect((await read(several, 'Mobile')).text).to.equal('+49301234568');
    const unknown = await read('Kontakt;Wer\n+49301234567;Ada\n');
    expect([unknown.columns, unknown.problem?.includes('Choose it below.')]).to.deep.equal([['Kontakt', 'Wer'], true]);
  });

  it('is refused in words about the file if it isn’t a list', async () => {
    expect((await read('PK\u0003\u0004')).problem).to.match(/spreadsheet file/);
  });
});

describe('the text about a checked number', () => {
  const checked: CheckedNumberView = {
    ...{ phone: '+12085551234', allowed: false, reasons: [], kind: 'ordinary', country: 'US', entries: [] },
    ...{ zones: 2, zoneNames: ['America/Boise', 'America/Los_Angeles'], rules: [rule('', '09:00', '20:00')], rulesFrom: null },
  };

  it('shows that several zones are possible', () => {
    expect(describeHours(checked)).to.equal('Monday to Friday 09:00–20:00 in each of 2 possible zones');
  });

  it('names a known zone', () => {
    expect(describeHours({ ...checked, zones: 1, zoneNames: ['Europe/Berlin'] })).to.equal('Monday to Friday 09:00–20:00 in Europe/Berlin');
    expect(describeHours({ ...checked, rules: [] })).to.equal(null);
  });

  it("says how hours differ by day, that they're open on some dates only, or that they're never open", () => {
    const closed: HoursRule = { prefix: '', days: [...weekdays], closed: true };
    const holiday = { prefix: '', date: '2026-12-25' };
    const describe = (...rules: HoursRule[]) => describeHours({ ...checked, zones: 1, zoneNames: ['Europe/Berlin'], rules });
    const [monday, tuesday] = [rule('', '09:00', '20:00', ['mon']), rule('', '10:00', '20:00', ['tue'])];
    expect(describe(monday, tuesday)).to.equal('Monday 09:00–20:00, Tuesday 10:00–20:00 in Europe/Berlin');
    expect(describe(closed, { ...holiday, from: '09:00', to: '12:00' })).to.equal('only on some dates in Europe/Berlin');
    expect(describe(closed, { ...holiday, closed: true })).to.equal('never in Europe/Berlin');
  });

  it("says when hours open in the recipient's zone, if it's known", () => {
    const opensAt = '2026-11-28T09:00:00.000Z';
    expect(formatForPerson(opensAt, ['Europe/Berlin'], 'Asia/Tokyo')).to.equal('28 Nov 2026, 10:00 Europe/Berlin');
    expect(formatForPerson(opensAt, checked.zoneNames, 'Asia/Tokyo')).to.equal('28 Nov 2026, 18:00 Asia/Tokyo');
  });

  it('explains each reason in a sentence', () => {
    const rulesFrom = { kind: 'account', id: 'a', name: 'Blue Clinic' } as const;
    const opensAt = '2026-11-24T09:00:00.000Z';
    expect(describeReasons({ ...checked, reasons: ['outside-calling-hours'], rulesFrom, opensAt }, 'UTC')).to.deep.equal([
      'It’s outside the calling hours of the account Blue Clinic. A call would be held until they open.',
    ]);
    expect(describeReasons({ ...checked, reasons: ['contact-limit'], limitsFrom: rulesFrom }, 'UTC')).to.deep.equal([
      'The contact limits of the account Blue Clinic don’t allow another call yet. A call would be held until they do.',
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
  const [heldUntil, heldFor, heldZone] = ['2026-11-24T08:00:00.000Z', null, null];
  const queued = { state: 'queued', contact: { phone: '+493012345678', name: null } } as const;

  it("names the time in the recipient's zone, if it's known, and what holds the call unless it's calling hours", () => {
    const held = (by: 'stop' | 'pace' | 'contact-limit' | null, zone: string | null = null) =>
      describeHeld({ heldUntil, heldFor: by, heldZone: zone }, 'Europe/Berlin');
    expect([held(null), held(null, 'America/New_York'), held('stop'), held('pace'), held('contact-limit')]).to.deep.equal([
      'held until 24 Nov 2026, 09:00 Europe/Berlin',
      'held until 24 Nov 2026, 03:00 America/New_York',
      'held because dialing is stopped',
      'waiting for its turn in the pace',
      'held until 24 Nov 2026, 09:00 Europe/Berlin by the contact limits',
    ]);
  });

  it('says when the number was last called, and if the call will lapse because of that', () => {
    const held = (more: { lapses?: true; lastCalledAt?: string }) =>
      describeHeld({ heldUntil, heldFor: 'contact-limit', heldZone, ...more }, 'Europe/Berlin');
    expect([
      held({ lastCalledAt: '2026-11-24T04:05:00.000Z' }),
      held({ lastCalledAt: '2026-11-23T04:05:00.000Z' }),
      held({ lastCalledAt: '2026-11-24T04:05:00.000Z', lapses: true }),
      held({ lapses: true }),
    ]).to.deep.equal([
      'held until 24 Nov 2026, 09:00 Europe/Berlin: this number was called at 05:05',
      'held until 24 Nov 2026, 09:00 Europe/Berlin: this number was called on 23 Nov 2026, 05:05',
      'will lapse at 24 Nov 2026, 09:00 Europe/Berlin because of the contact limits: this number was called at 05:05',
      'will lapse at 24 Nov 2026, 09:00 Europe/Berlin because of the contact limits',
    ]);
  });

  it("is shown with the provider's reason if the call will be retried", () => {
    const retried = { ...queued, heldUntil, heldFor, heldZone, detail: 'The provider returned 503.' };
    expect(describeState(retried, 'Europe/Berlin')).to.equal('held until 24 Nov 2026, 09:00 Europe/Berlin · The provider returned 503.');
  });

  it("is omitted if the call isn't held", () => {
    expect(
      describeState({ ...queued, heldUntil: null, heldFor, heldZone, detail: 'The provider returned 503.' }, 'Europe/Berlin'),
    ).to.equal('The provider returned 503.');
    expect(describeState({ ...queued, heldUntil: null, heldFor, heldZone, detail: null }, 'Europe/Berlin')).to.equal(null);
  });
});

describe('the text about calls that wait for a stop', () => {
  it('promises only that they leave as soon as all rules allow, at most at the pace of what was stopped', () => {
    const pace = { perSecond: 0.5, liveCalls: null };
    expect([
      describeWaiting({ queuedCalls: 2, pace, hasOthers: false }),
      describeWaiting({ queuedCalls: 1, pace: null, hasOthers: true }),
      describeWaiting({ queuedCalls: 0, pace, hasOthers: false }),
    ]).to.deep.equal([
      '2 calls are waiting. They leave once they’re due, as soon as paces, calling hours and limits allow: at most 0.5 a second.',
      '1 call is waiting. It leaves once it’s due, as soon as other stops, paces, calling hours and limits allow.',
      'No calls are waiting.',
    ]);
  });
});
