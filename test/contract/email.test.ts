import { expect } from 'chai';
import { emailSchema, normalizeEmail } from '#contract/text/text.ts';
import { readableEmail } from '../../core/domain/directory/readable-email.ts';

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
});
