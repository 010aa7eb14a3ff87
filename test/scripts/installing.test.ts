import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { bareEnvironment } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';

const require = createRequire(import.meta.url);

describe('installing the packages', () => {
  it('tells no one, even with an npm that ignores allowScripts', async () => {
    const { scarfSettings, ...rest } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const folder = freshDirectory();
    const report = async (settings: object) => {
      writeFileSync(
        join(folder, 'package.json'),
        JSON.stringify({ ...rest, scarfSettings: { ...settings, allowTopLevel: true, skipTraversal: true } }),
      );
      let requests = 0;
      const server = createServer((_, response) => {
        requests++;
        response.end();
      });
      server.listen(0, 'localhost');
      await once(server, 'listening');
      const env = { ...bareEnvironment, INIT_CWD: folder, SCARF_LOCAL_PORT: String(Object(server.address()).port) };
      await promisify(execFile)(process.execPath, [require.resolve('@scarf/scarf')], { env });
      server.close();
      return requests;
    };
    expect(await report({})).to.equal(1);
    expect(await report(scarfSettings)).to.equal(0);
  });
});
