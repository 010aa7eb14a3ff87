import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { oneLine, outputTo, stripControls, table } from '../../core/admin/output.ts';

describe('a table of admin', () => {
  it('makes each column as wide as its widest cell, with two spaces between and none at the end', () => {
    const lines = table(
      ['ID', 'NAME', 'OF'],
      [
        ['1', 'Ada Lovelace', ''],
        ['23456', 'Bo', 'One'],
      ],
    ).split('\n');
    expect(lines).to.deep.equal(['ID     NAME          OF', '1      Ada Lovelace', '23456  Bo            One']);
  });

  it('has its head alone where there are no rows', () => {
    expect(table(['ID', 'NAME'], [])).to.equal('ID  NAME');
  });

  it('counts characters, not UTF-16 units', () => {
    expect(table(['A', 'B'], [['😀', 'x']])).to.equal('A  B\n😀  x');
  });

  it('keeps each row in a line of its own', () => {
    expect(table(['A'], [['one\nforged\r\nline']])).to.equal('A\none forged line');
  });
});

describe('text from outside', () => {
  for (const [what, given, shown] of [
    ['escape sequences', '\u001b[31mred\u001b[0m', 'red'],
    ['a window title', '\u001b]0;owned\u0007x', 'x'],
    ['C1 controls', 'a\u0085b', 'ab'],
    ['bidirectional formatting', 'a\u202eb\u2066c\u200f\u061c', 'abc'],
    ['line and paragraph separators', 'a\u2028b\u2029c', 'abc'],
  ] as const) {
    it(`loses ${what}`, () => {
      expect(stripControls(given)).to.equal(shown);
    });
  }

  it('keeps line breaks, accents and other scripts', () => {
    expect(stripControls('Zoë\n山田 – 50 %')).to.equal('Zoë\n山田 – 50 %');
  });

  it('becomes one line where it is a part of one', () => {
    expect(oneLine('  a\n\tb \u001b[2Jc ')).to.equal('a b c');
  });
});

describe('an answer of admin', () => {
  async function written(asJson: boolean): Promise<string> {
    const stdout = new PassThrough();
    outputTo({ stdout, stderr: new PassThrough() }, asJson).answer({ name: 'a\u202eb\u009bc\u001b' }, 'the \u001b[31mtext');
    stdout.end();
    return text(stdout);
  }

  it('is one JSON object in a line, in which an escape keeps what could steer a terminal', async () => {
    const line = await written(true);
    expect(line).to.equal('{"name":"a\\u202eb\\u009bc\\u001b"}\n');
    expect(JSON.parse(line)).to.deep.equal({ name: 'a\u202eb\u009bc\u001b' });
  });

  it('is text without controls where JSON is not asked for', async () => {
    expect(await written(false)).to.equal('the text\n');
  });
});
