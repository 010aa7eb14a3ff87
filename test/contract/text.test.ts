import { expect } from 'chai';
import fc from 'fast-check';
import type { z } from 'zod';
import { handoffSchema } from '#contract/calls/dialer.ts';
import { createApiKeySchema } from '#contract/console/api-keys.ts';
import { callSchema } from '#contract/console/calls.ts';
import { createUserSchema, userSchema } from '#contract/console/users.ts';
import {
  countCodePoints,
  describeLineProblem,
  emailSchema,
  foldText,
  isIdentifier,
  isWithinCodePoints,
  lineSchema,
  normalizeEmail,
  textSchema,
  timestamp,
  toNfc,
  toPhonePrefix,
} from '#contract/text/text.ts';
import { readableEmail } from '../../core/domain/directory/readable-email.ts';
import { at } from '../support/clock.ts';

const listMessages = (text: string, schema: z.ZodType = lineSchema(200)) =>
  schema.safeParse(text).error?.issues.map(({ message }) => message) ?? [];
const isTaken = (text: string) => lineSchema(200).safeParse(text).success;
const every = Array.from({ length: 0x11_0000 }, (_, code) => code).filter((code) => code < 0xd800 || code > 0xdfff);
const line = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 });

const isInvisible = (code: number) =>
  /[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}\u2800]/u.test(String.fromCodePoint(code));
const invisible = every.filter(isInvisible);
const toHex = (code: number) => `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;

describe('an email address', () => {
  for (const [typed, canonical, readable = canonical] of [
    ['joerg@münchen.example', 'joerg@xn--mnchen-3ya.example', 'joerg@münchen.example'],
    [' Joerg@MU\u0308NCHEN.Example', 'joerg@xn--mnchen-3ya.example', 'joerg@münchen.example'],
    ['joerg@XN--MNCHEN-3YA.example.', 'joerg@xn--mnchen-3ya.example', 'joerg@münchen.example'],
    ['joerg\uFF20münchen\u3002example', 'joerg@xn--mnchen-3ya.example', 'joerg@münchen.example'],
    ['a@faß.de', 'a@xn--fa-hia.de', 'a@faß.de'],
    ['a@例え.jp', 'a@xn--r8jz45g.jp', 'a@例え.jp'],
    ['a@пример.рф', 'a@xn--e1afmkfd.xn--p1ai', 'a@пример.рф'],
    ['a@ｅxample.com', 'a@example.com'],
    ['a@1.2', 'a@1.2'],
    // Letters that look like those of apple.com.
    ['a@аррӏе.com', 'a@xn--80ak6aa92e.com'],
    ['a@\u0251pple.com', 'a@xn--pple-p5b.com'],
  ] as const) {
    it(`typed as ${typed} is the same as ${canonical}, shown as ${readable}`, () => {
      expect(normalizeEmail(typed)).to.equal(canonical);
      expect(emailSchema.parse(typed)).to.equal(canonical);
      expect(readableEmail(canonical)).to.equal(readable);
      expect(normalizeEmail(readable)).to.equal(canonical);
    });
  }

  const empty = ['example.com..', 'münchen.example..', 'example.com.\u3002', 'b..example', '.example', '\u3002example'];
  for (const email of ['a@b/c.ü', 'a@ü:80', 'a@exam\u00ADple.com', 'a@ü@b', 'a@%65.ü', ...empty.map((domain) => `a@${domain}`)]) {
    it(`can't be ${JSON.stringify(email)}`, () => expect(emailSchema.safeParse(email).success).to.equal(false));
  }

  it("can't contain any invisible character, and the error names it", () => {
    for (const code of invisible) {
      const [message, ...more] = listMessages(`ev${String.fromCodePoint(code)}il@example.com`, emailSchema);
      expect([message?.includes(`${toHex(code)}.`), more], toHex(code)).to.deep.equal([true, []]);
    }
  });
});

describe('the length of text', () => {
  it('equals the number of its code points', () => {
    fc.assert(fc.property(line, fc.nat(300), (text, max) => isWithinCodePoints(text, max) === countCodePoints(text) <= max));
  });

  it('is checked before normalization, which is skipped for text that is too long', () => {
    const marks = '\u0316\u0315'.repeat(16_000);
    expect(marks.slice(0, 200).normalize('NFC')).not.to.equal(marks.slice(0, 200));
    expect(toNfc(marks, 200)).to.equal(marks);
    expect(listMessages(marks)).to.deep.equal(['Must be at most 200 characters.']);
  });

  it('may be four times the limit before normalization, because a character decomposes into at most four characters', () => {
    const isLonger = (code: number) => countCodePoints(String.fromCodePoint(code).normalize('NFD')) > 4;
    expect(every.filter(isLonger)).to.deep.equal([]);
    const widest = '\u1f82';
    expect(lineSchema(200).parse(widest.repeat(200).normalize('NFD'))).to.equal(widest.repeat(200));
    expect(isTaken(widest.repeat(201).normalize('NFD'))).to.equal(false);
  });

  it('is measured after normalization, whatever form the text was in', () => {
    fc.assert(
      fc.property(line, fc.integer({ min: 1, max: 300 }), (text, max) => {
        // JavaScript trims this character, but the schema keeps it.
        fc.pre(!text.includes('\uFEFF'));
        const counts = countCodePoints(text.trim().normalize('NFC')) <= max;
        return ['NFC', 'NFD'].every(
          (form) => !listMessages(text.normalize(form), lineSchema(max)).includes(`Must be at most ${max} characters.`) === counts,
        );
      }),
    );
  });
});

/** Not ignorable by default, but no one sees them: annotations, controls of hieroglyphs, a filler, a musical sign, and noncharacters. */
const refusedFormats = every.filter((code) =>
  /[\uFFF9-\uFFFB\u{13430}-\u{1343F}\u{16FE4}\u{1D159}\p{Noncharacter_Code_Point}]/v.test(String.fromCodePoint(code)),
);

describe('a name', () => {
  it("can't start or end with U+FEFF, which JavaScript treats as a space", () => {
    for (const name of ['\uFEFFCRM', 'CRM\uFEFF', ' \uFEFF CRM']) expect(isTaken(name), JSON.stringify(name)).to.equal(false);
  });

  it("can't contain any invisible character, and the error names it", () => {
    for (const code of invisible) {
      const [message, ...more] = listMessages(`CRM${String.fromCodePoint(code)}live`);
      expect(message, toHex(code)).to.match(/^Remove the invisible character /);
      expect([message?.includes(toHex(code)), more]).to.deep.equal([true, []]);
    }
  });

  it("can't contain a format character, a blank sign or a noncharacter, either", () => {
    for (const code of refusedFormats) expect(isTaken(`CRM${String.fromCodePoint(code)}`), toHex(code)).to.equal(false);
    for (const sign of ['\u0600', '\u06dd', '\u08e2', '\u{110bd}']) expect(isTaken(`CRM ${sign}12`)).to.equal(true);
  });

  it('can contain every visible character', () => {
    const controls = every.filter((code) => /\p{Cc}/u.test(String.fromCodePoint(code)));
    const blank = new Set([...invisible, ...controls, ...refusedFormats]);
    const refused = every.filter((code) => describeLineProblem(`a${String.fromCodePoint(code)}b`, 3) !== null);
    expect(refused.filter((code) => !blank.has(code)).map(toHex)).to.deep.equal([]);
    expect(describeLineProblem('a\ud800', 3)).to.contain('half of a character');
    expect(controls.filter((code) => describeLineProblem(`a${String.fromCodePoint(code)}b`, 3) === null)).to.deep.equal([]);
  });

  it('has at least one visible character', () => {
    for (const name of ['\u2800\u2800', '\u3164', '\u115f\u1160', '\u0301', '\u00a0\u3000\u0301', '\ue000'])
      expect(isTaken(name), JSON.stringify(name)).to.equal(false);
  });

  it('keeps invisible characters where they change what is seen: in emoji, and in scripts that need them', () => {
    const emoji = ['👩‍👩‍👧', '👁️‍🗨️', '👁‍🗨', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '1️⃣', '❤️', '☎', '⌚︎', '🏳️‍🌈', '🏃‍♂', '🧑🏽‍💻'];
    const words = ['می‌خواهم', 'क्‍ष', 'क्‌ष', 'র‍্য', 'ന്‍', 'ශ්‍රී', '葛󠄀城', 'ᠭᠣᠣᠪᠢ᠎ᠠ'];
    for (const name of [...emoji, ...words]) expect(lineSchema(200).parse(`CRM ${name} live`)).to.equal(`CRM ${name} live`);
  });

  it("can't contain joiners, selectors and tags anywhere else, because they're invisible there", () => {
    for (const name of ['1\ufe0f', '😀\ufe0f', '😀\u200d😀', '©\ufe0e', 'a\u200db', 'می\u200c', 'م\u200c\u200cم', 'a\u{e0100}', 'a\u180e'])
      expect(isTaken(name), JSON.stringify(name)).to.equal(false);
    for (const name of ['🏴\u{e0067}\u{e007f}', '🏴', '\u{e0061}b']) expect(isTaken(name), JSON.stringify(name)).to.equal(name === '🏴');
  });

  it("of letters without joined forms can't contain anything invisible", () => {
    const unit = fc.oneof(fc.constantFrom(...'aZ19ßЖ© -'), fc.constantFrom(...invisible.map((code) => String.fromCodePoint(code))));
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 9 }), (text) => {
        const isVisible = [...text].every((letter) => !invisible.includes(letter.codePointAt(0) ?? 0));
        // An emoji selector after this symbol can be seen.
        fc.pre(!text.includes('©\ufe0f'));
        expect(isTaken(`a${text}a`), JSON.stringify(text)).to.equal(isVisible);
      }),
    );
  });

  it('keeps repeated spaces and everything else except surrounding spaces', () => {
    for (const name of ['a   b', 'a\u00a0\u00a0b', 'שלום CRM']) expect(lineSchema(200).parse(` ${name}  `)).to.equal(name);
  });

  it('follows the same rules for keys, users and contacts', () => {
    const key = { name: 'a\u202eb', expiration: { kind: 'none' }, timeZone: 'UTC' };
    const user = { name: 'a\u202eb', email: 'a@example.com', userType: 'staff' };
    expect(createApiKeySchema.safeParse(key).success).to.equal(false);
    expect(createUserSchema.safeParse(user).success).to.equal(false);
  });

  it('that was stored before these rules existed can still be read by consoles and providers', () => {
    const name = 'a\u202eb\u200b';
    for (const schema of [userSchema.shape.name, callSchema.shape.contact.shape.name, handoffSchema.shape.contact.shape.name])
      expect(schema.parse(name)).to.equal(name);
  });
});

describe('a search by name', () => {
  for (const [a, b] of [
    ['Crème', 'CREME'],
    ['e\u0301', '\u00e9'],
    ['ﬁne', 'fine'],
    ['Ａｄａ', 'ada'],
    ['ｶﾀｶﾅ１', 'カタカナ1'],
    ['한글', '한글'.normalize('NFD')],
    ['C\u00adR\u200bM\u2800', 'crm'],
  ] as const) {
    it(`finds ${a} when searching for ${b}`, () => expect(foldText(a)).to.equal(foldText(b)));
  }

  it("doesn't find a different name", () => {
    expect(foldText('Ada 1')).to.equal('ada 1');
  });
});

describe('a search by the start of a number', () => {
  for (const [search, prefix] of [
    ['+49 (0)30 2000-1', '+493020001'],
    ['(+49) 30', '+4930'],
    [' 0049/30', '+4930'],
    ['tel:+49-30', '+4930'],
    ["'+4930", '+4930'],
    ['(030) 20', '+3020'],
    ['4', '+4'],
    ['0', '+0'],
    ['+', '+'],
    ['(', null],
    ['(0)', null],
    ['', null],
    ['Berlin', null],
    ['+49 Berlin', null],
  ] as const) {
    it(`for "${search}" looks for ${prefix === null ? 'nothing' : `numbers that start with ${prefix}`}`, () => {
      expect(toPhonePrefix(search)).to.equal(prefix);
    });
  }
});

describe('an identifier', () => {
  it('has 1 to 64 letters, digits, hyphens and underscores', () => {
    expect(['a', 'A-z_09', 'a'.repeat(64)].map(isIdentifier)).to.deep.equal([true, true, true]);
    expect(['', 'a'.repeat(65), 'a b', 'a/b', 'é', ' a', 'a ', 'a\n'].map(isIdentifier)).to.deep.equal(Array(8).fill(false));
  });
});

describe('an instant', () => {
  it('is written in UTC with milliseconds', () => {
    expect([timestamp(0), timestamp(at('2026-11-21T10:00:00.5+01:00'))]).to.deep.equal([
      '1970-01-01T00:00:00.000Z',
      '2026-11-21T09:00:00.500Z',
    ]);
  });
});

describe('text with several lines', () => {
  it("is kept unchanged, even if it's empty, isn't normalized, or has surrounding spaces or invisible characters", () => {
    for (const text of ['', ' a ', 'e\u0301\r\n\tb', '\u200b']) expect(textSchema(10).parse(text)).to.equal(text);
  });
});
