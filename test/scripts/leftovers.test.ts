import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { bareEnvironment } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';

const mocha = fileURLToPath(new URL('../../node_modules/mocha/bin/mocha.js', import.meta.url));

/** Runs a file with one test, and another one that leaves nothing behind. Returns Mocha's output, and whether both passed. */
async function report(body: string): Promise<{ failed: boolean; stdout: string }> {
  const directory = freshDirectory();
  const files = [body, ''].map((each, index) => {
    const file = join(directory, `${index}.test.ts`);
    writeFileSync(file, `describe('one', () => it('passes', () => { ${each} }));\n`);
    return file;
  });
  return promisify(execFile)(process.execPath, [mocha, ...files], { env: bareEnvironment }).then(
    ({ stdout }) => ({ failed: false, stdout }),
    ({ stdout }) => ({ failed: true, stdout }),
  );
}

const cases = [
  ['process', `process.getBuiltinModule('child_process').spawn('sleep', ['60'])`, /the process \d+ \(sleep 60\)/],
  ['server', `process.getBuiltinModule('net').createServer().listen(0)`, /a server at .+port/],
  ['timer', 'setInterval(() => {}, 1_000)', /1 timers/],
  ['mocked timer', `process.getBuiltinModule('node:test').mock.timers.enable({ apis: ['setTimeout'] })`, /mocked timers/],
  ['file', `process.getBuiltinModule('fs').writeFileSync(process.env.TMPDIR + '/callkey-left', '')`, /the temporary callkey-left/],
] as const;

describe('a test file', () => {
  let reports: ReturnType<typeof report>[];
  // Run the test files concurrently, because each waits up to ten seconds for its leftovers to disappear.
  before(() => {
    reports = cases.map(([, body]) => report(body));
  });
  for (const [index, [what, , name]] of cases.entries()) {
    it(`fails if it leaves a ${what} behind, and says which, and the next file passes`, async () => {
      const { failed, stdout } = (await reports[index]) ?? { failed: false, stdout: '' };
      expect({ failed, counts: stdout.match(/\d+ (passing|failing)/g) }).to.deep.equal({
        failed: true,
        counts: ['2 passing', '1 failing'],
      });
      expect(stdout)
        .to.match(/The tests left behind: /)
        .and.to.match(name);
    });
  }

  it('passes if it leaves nothing behind', async () => {
    expect((await report('')).failed).to.equal(false);
  });
});
