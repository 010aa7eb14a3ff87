import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { freshDirectory } from '../support/databases.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('the linter', () => {
  it("refuses every source of random values in the core that isn't cryptographic", () => {
    const refused = [
      'Math.random();',
      "Math['random']();",
      'globalThis.Math.random();',
      'const { random } = Math;',
      'const numbers = Math;',
      "import { pseudoRandomBytes } from 'node:crypto';",
      "import { pseudoRandomBytes as bytes } from 'node:crypto';",
      'crypto.pseudoRandomBytes(16);',
    ];
    const accepted = ["import { randomBytes } from 'node:crypto';", 'Math.max(1, 2);'];
    const folder = freshDirectory();
    for (const path of ['biome.json', 'scripts/lint']) cpSync(join(root, path), join(folder, path), { recursive: true });
    mkdirSync(join(folder, 'core'));
    writeFileSync(join(folder, 'core', 'keys.ts'), [...refused, ...accepted].join('\n'));
    const args = ['lint', '--only=plugin', '--reporter=github', '--vcs-enabled=false'];
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/biome'), args, { cwd: folder, encoding: 'utf8' });
    const lines = stdout.matchAll(/keys\.ts,line=(\d+),.*a cryptographic source/g).map(([, line]) => Number(line));
    expect([...new Set(lines)]).to.deep.equal(refused.map((_, index) => index + 1));
  });
});
