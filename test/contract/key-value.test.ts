import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { findKeyValues, hasMistypedKey, isKeyValue, makeKeyValue, redactKeyValues } from '#contract/key-value.ts';

describe('a key value', () => {
  // Computed independently with Python's zlib.crc32.
  const withoutChecksum = 'svc_sk_live_0000000000000000000000000000000000000000000';

  it('ends with the CRC-32 of everything before it, in base62', () => {
    expect(isKeyValue(`${withoutChecksum}4e4SeA`)).to.equal(true);
    expect(checksum(withoutChecksum)).to.equal('4e4SeA');
  });

  it('is generated without the random bytes that would make some characters more likely than others', () => {
    const zeros = makeKeyValue((size) => new Uint8Array(size));
    expect(zeros).to.equal(`${withoutChecksum}4e4SeA`);
    let calls = 0;
    const skipping = makeKeyValue((size) => new Uint8Array(size).fill(++calls === 1 ? 248 : 61));
    expect(skipping.slice(12, -6)).to.equal('z'.repeat(43));
    const skippingOne = makeKeyValue((size) => new Uint8Array(size).fill(247).fill(248, 0, 1));
    expect(skippingOne).to.match(/^svc_sk_live_z{43}\w{6}$/);
  });

  it('is invalid with any single character changed', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.constantFrom(...'09AZaz_'), (place, character) => {
        const keyValue = makeKeyValue(randomBytes);
        const changed = keyValue.slice(0, place) + character + keyValue.slice(place + 1);
        return isKeyValue(changed) === (changed === keyValue);
      }),
    );
  });

  for (const [what, body] of [
    ['a different prefix', withoutChecksum.replace('live', 'test')],
    ['a hyphen', withoutChecksum.replace('00', '0-')],
    ['an extra character', `${withoutChecksum}0`],
    ['a missing character', withoutChecksum.slice(0, -1)],
  ] as const) {
    it(`can't have ${what}, even with a matching checksum`, () => {
      expect(isKeyValue(body + checksum(body))).to.equal(false);
    });
  }

  it('is redacted from text, even if only its start is present, but a bare prefix stays', () => {
    const [a, b] = [makeKeyValue(randomBytes), 'svc_sk_live_0A'];
    expect(redactKeyValues(`a ${a} b https://x/?k=${b}&c`)).to.equal('a svc_sk_live_[redacted] b https://x/?k=svc_sk_live_[redacted]&c');
    expect(redactKeyValues('svc_sk_live_ svc_sk_test_0\n')).to.equal('svc_sk_live_ svc_sk_test_0\n');
  });

  const key = `${withoutChecksum}4e4SeA`;
  const other = makeKeyValue((size) => new Uint8Array(size).fill(61));
  for (const [what, text, found] of [
    ['alone', key, [key]],
    ['in a header', `X-API-Key: ${key}\r\nAccept: */*`, [key]],
    ['in a line of a file, in quotes', `export KEY="${key}" # for the shop`, [key]],
    ['in JSON', JSON.stringify({ key, other: 1 }), [key]],
    ['with line breaks and a quote mark', key.replace(/(.{20})/g, '$1\r\n> '), [key]],
    ['with soft line breaks', key.replace(/(.{20})/g, '$1=\n'), [key]],
    ['with invisible characters', [...key].join('\u200B\u00AD\uFEFF'), [key]],
    ['with escaped underscores', key.replaceAll('_', '\\_'), [key]],
    ['with percent-encoded underscores', `?k=${key.replaceAll('_', '%5F')}&a=b`, [key]],
    ['in full-width characters', key.replace(/[!-~]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)), [key]],
    ['twice, and with another one', `${key} ${other} ${key}`, [key, other]],
    ['after a part of another one', `${other.slice(0, -3)} ${key}`, [key]],
    ['with one more character', `${key}A`, []],
    ['with one character less', key.slice(0, -1), []],
    ['with one character less, before a word', `${key.slice(0, -1)} And more`, []],
  ] as const) {
    it(`${found.length > 0 ? 'is' : "isn't"} found ${what}`, () => expect(findKeyValues(text)).to.deep.equal(found));
  }

  it('is called mistyped only if it has the right length', () => {
    const wrong = key.replace('4e4SeA', '4e4SeB');
    expect([wrong, `key: ${wrong}.`, key, wrong.slice(0, -1), `${wrong}A`].map(hasMistypedKey)).to.deep.equal([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

function checksum(text: string): string {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const places = Array.from({ length: 6 }, (_, place) => Math.floor(crc32(text) / 62 ** (5 - place)) % 62);
  return places.map((digit) => alphabet.charAt(digit)).join('');
}
