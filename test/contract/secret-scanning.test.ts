import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { skip } from '../support/suites.ts';

const folder = new URL('../../core/docs/secret-scanning/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8');

function firstMatch(text: string, form: RegExp): string {
  const [, match] = form.exec(text) ?? [];
  if (match === undefined) throw new Error(`The file doesn't contain ${form}.`);
  return match;
}

/** Returns a cell of the README's table, where pipes are escaped. JavaScript uses ^ and $ instead of \A and \z. */
const cell = (field: string) => firstMatch(read('README.md'), new RegExp(`\\| ${field} \\| \`(.*)\` \\|`)).replaceAll('\\|', '|');
const github = `(?:${cell('Before secret').replace('\\A', '^')})(${cell('Secret format')})(?:${cell('After secret').replace('\\z', '$')})`;

const patterns = {
  gitleaks: new RegExp(firstMatch(read('gitleaks.toml'), /regex = '''(.*)'''/), 'g'),
  TruffleHog: new RegExp(firstMatch(read('trufflehog.yaml'), /key: '(.*)'/), 'g'),
  GitHub: new RegExp(github, 'g'),
};
const thresholds = [firstMatch(read('gitleaks.toml'), /entropy = (.*)/), firstMatch(read('trufflehog.yaml'), /entropy: (.*)/)].map(Number);

/** Shannon entropy in bits per character, as both scanners calculate it. */
function computeEntropy(text: string): number {
  const counts = Map.groupBy(text, (character) => character)
    .values()
    .map(({ length }) => length / text.length);
  return -counts.reduce((sum, share) => sum + share * Math.log2(share), 0);
}

const keys = Array.from({ length: 500 }, () => makeKeyValue(randomBytes));
const [key = ''] = keys;
const nearMisses: [what: string, text: string][] = [
  ['a key with a missing character', key.slice(0, -1)],
  ['a key with an extra character', `${key}0`],
  ['a different prefix', key.replace('live', 'test')],
  ['an uppercase prefix', key.replace('svc_sk_live', 'SVC_SK_LIVE')],
  ['the prefix alone', 'svc_sk_live_'],
  ['a key with a hyphen', `${key.slice(0, 30)}-${key.slice(31)}`],
  ['a redacted key', 'svc_sk_live_[redacted]'],
];

describe('the patterns for secret scanners', () => {
  for (const [scanner, pattern] of Object.entries(patterns)) {
    for (const [where, surround] of [
      ['on its own', (text: string) => text],
      ['between quotes', (text: string) => `key = "${text}"`],
      ['in a header', (text: string) => `X-API-Key: ${text}\r\n`],
      ['after an escape', (text: string) => `"Authorization:\\n${text}"`],
      ['after a percent-encoded character', (text: string) => `%20${text}%3D${text.slice(0, 20)}`],
      ['before an underscore', (text: string) => `${text}_old`],
      ['in a URL', (text: string) => `https://calls.example.com/?key=${text}&more=1`],
    ] as const) {
      it(`find every key ${where} (${scanner})`, () => {
        for (const each of keys) expect([...surround(each).matchAll(pattern)].map((match) => match[1] ?? match[0])).to.deep.equal([each]);
      });
    }
    for (const [what, text] of nearMisses) {
      it(`ignore ${what} with ${scanner}`, () => expect([...` ${text} `.matchAll(pattern)]).to.deep.equal([]));
    }
  }

  describe('in RE2, whose syntax both scanners use (needs libre-engine-re2-perl)', () => {
    const perl = (...args: string[]) => ['-Mre::engine::RE2=-strict,1', ...args];
    before(function () {
      if (spawnSync('perl', perl('-e', '1')).status !== 0) skip(this, 'no re::engine::RE2 for perl');
    });
    // Prints the matches in each line, separated by spaces.
    const program = 'my $form = shift; while (<STDIN>) { my @found; push @found, $1 while /$form/g; print "@found\\n" }';

    for (const scanner of ['gitleaks', 'TruffleHog'] as const) {
      it(`find every key and ignore near misses with ${scanner}`, () => {
        const texts = [...keys.map((each) => `"${each}",${each}`), ...nearMisses.map(([, text]) => text)];
        const { stdout, stderr } = spawnSync('perl', perl('-e', program, patterns[scanner].source), {
          input: texts.join('\n'),
          encoding: 'utf8',
        });
        const expected = [...keys.map((each) => `${each} ${each}`), ...nearMisses.map(() => '')];
        expect([stderr, stdout.split('\n').slice(0, -1)]).to.deep.equal(['', expected]);
      });
    }
  });

  it('have an entropy threshold between the entropy of keys and that of placeholders', () => {
    expect(thresholds).to.have.length(2);
    for (const threshold of thresholds) {
      expect(Math.min(...keys.map(computeEntropy))).to.be.greaterThan(threshold);
      for (const filler of ['x', '0', 'X1'])
        expect(computeEntropy(`svc_sk_live_${filler.repeat(49).slice(0, 49)}`)).to.be.lessThan(threshold);
    }
  });

  describe('find_keys.py', () => {
    before(function () {
      if (spawnSync('python3', ['--version']).status !== 0) skip(this, 'no python3');
    });
    const script = fileURLToPath(new URL('find_keys.py', folder));
    const run = (input: string | Buffer) => spawnSync('python3', [script], { input, encoding: 'utf8' });

    it('reports the line of every key without showing the key', () => {
      const { status, stdout, stderr } = run(keys.map((each) => `+ key: ${each}\n`).join(''));
      expect([status, stderr]).to.deep.equal([1, '']);
      expect(stdout).to.equal(keys.map((_, index) => `line ${index + 1}: an API key\n`).join(''));
    });

    it('finds keys in UTF-16 of either byte order', () => {
      const little = Buffer.from(`\ufeffname\r\n${key}\r\n`, 'utf16le');
      for (const input of [little, Buffer.from(little).swap16()])
        expect(run(input)).to.include({ status: 1, stdout: 'line 2: an API key\n', stderr: '' });
    });

    it('ignores text with the form of a key but an incorrect checksum, and all near misses', () => {
      const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      const placeholder = `svc_sk_live_${'x'.repeat(49)}`;
      const input = [mistyped, placeholder, ...nearMisses.map(([, text]) => text)].join('\n');
      expect(run(input)).to.include({ status: 0, stdout: '', stderr: '' });
    });
  });
});
