import { expect } from 'chai';
import { stripControls } from '#contract/text/terminal-text.ts';
import { oneLine, shortName, table } from '../../core/admin/command-line.ts';

describe('formatting a table', () => {
  it('makes each column as wide as its widest cell, with two spaces between columns and no trailing space', () => {
    const lines = table(
      ['ID', 'NAME', 'OF'],
      [
        ['1', 'Ada Lovelace', ''],
        ['23456', 'Bo', 'One'],
      ],
    ).split('\n');
    expect(lines).to.deep.equal(['ID     NAME          OF', '1      Ada Lovelace', '23456  Bo            One']);
  });

  it('prints only the header if there are no rows', () => {
    expect(table(['ID', 'NAME'], [])).to.equal('ID  NAME');
  });

  for (const [what, cell, columns] of [
    ['Chinese, Japanese and Korean characters, two columns each', '山田한글', 8],
    ['fullwidth letters', 'Ａｂ', 4],
    ['an emoji', '😀', 2],
    ['a family emoji made of several characters', '👨‍👩‍👧', 2],
    ['a heart shown as an emoji', '❤️', 2],
    ['a combining accent, which takes no column', 'Zoe\u0308', 3],
  ] as const) {
    it(`aligns by display width: ${what}`, () => {
      expect(table(['A', 'B'], [[cell, 'x']])).to.equal(`A${' '.repeat(columns + 1)}B\n${cell}  x`);
    });
  }

  it('truncates long names at character boundaries, and leaves short names unchanged', () => {
    expect(['x'.repeat(40), 'x'.repeat(41), '山'.repeat(21), 'a\nb'].map(shortName)).to.deep.equal([
      'x'.repeat(40),
      `${'x'.repeat(39)}…`,
      `${'山'.repeat(19)}…`,
      'a b',
    ]);
  });

  it('keeps each row on one line', () => {
    expect(table(['A'], [['one\nforged\r\nline']])).to.equal('A\none forged line');
  });
});

describe('stripping control characters', () => {
  for (const [what, text, shown] of [
    ['escape sequences', '\u001b[31mred\u001b[0m', 'red'],
    ['a window title', '\u001b]0;owned\u0007x', 'x'],
    ['C1 controls', 'a\u0085b', 'ab'],
    ['bidirectional formatting', 'a\u202eb\u2066c\u200f\u061c', 'abc'],
    ['line and paragraph separators', 'a\u2028b\u2029c', 'abc'],
  ] as const) {
    it(`removes ${what}`, () => {
      expect(stripControls(text)).to.equal(shown);
    });
  }

  it('keeps line breaks, accents and other scripts', () => {
    expect(stripControls('Zoë\n山田 – 50 %')).to.equal('Zoë\n山田 – 50 %');
  });

  it("puts text on one line if it's part of a line", () => {
    expect(oneLine('  a\n\tb \u001b[2Jc ')).to.equal('a b c');
  });
});
