import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { exampleCall } from '../../../desktop/renderer/state/api-keys.ts';
import { freshDirectory } from '../../support/databases.ts';
import { findProgram, skip } from '../../support/suites.ts';

const address = 'https://calls.example.com/api/v1/campaigns/c1/contacts/on-demand';
const body = '{"requestId":"test-1","contact":{"phone":"+493023125000"}}';

describe('the example command for placing a call', () => {
  const command = exampleCall('https://calls.example.com/', 'c1', 'test-1');

  it('uses the campaign and server, a request ID and an unassigned number', () => {
    expect(command).to.include(`curl ${address} `);
    expect(command).to.include(`'${body}'`);
  });

  for (const shell of ['bash', 'dash', 'zsh', 'fish']) {
    it(`asks for the key in ${shell} without showing it, and passes it to curl in its input`, async function () {
      const shown = await runOnTerminal(this, shell, command, 'svc_sk_live_some\n');
      expect(shown.split(/[\r\n]+/)).to.deep.equal([
        ...['API key: ', address, '-H', '@-', '-H', 'Content-Type: application/json', '-d', body, 'X-API-KEY: SVC_SK_LIVE_SOME'],
        ...['The terminal shows what is typed.', ''],
      ]);
    });
  }

  it('asks again after an empty line, such as a second Enter after pasting the command', async function () {
    expect(await runOnTerminal(this, 'bash', command, '\n\nsvc_sk_live_some\n')).to.contain('X-API-KEY: SVC_SK_LIVE_SOME');
  });

  it("passes the server's address to curl unchanged, whatever it contains", async function () {
    for (const server of ["https://calls.example.com/it's;x&$(id)`id`", 'http://[::1]:8080/a b', 'https://a.example/*?"']) {
      const shown = await runOnTerminal(this, 'bash', exampleCall(server, 'c1', 'test-1'), 'x\n');
      expect(shown).to.contain(`\n${server}/api/v1/campaigns/c1/contacts/on-demand\r\n`);
    }
  });

  it('has a placeholder for an unknown campaign', () => {
    expect(exampleCall('https://calls.example.com', '{campaignId}', 'test-1')).to.include('/campaigns/{campaignId}/');
  });
});

describe("the reference's command that reads the key", () => {
  const page = readFileSync('core/reference/page.html', 'utf8');
  const [, forMost = '', forFish = ''] = /^(stty .*)<\/pre>\n<p>In fish, [^<]*<code>(.*)<\/code>/m.exec(page) ?? [];

  for (const [shell, command] of Object.entries({ bash: forMost, dash: forMost, zsh: forMost, fish: forFish })) {
    it(`exports the key from ${shell} without showing it`, async function () {
      const shown = await runOnTerminal(this, shell, `${command}\nprintenv CALLKEY_API_KEY | curl`, 'svc_sk_live_some\n');
      expect(shown).to.contain('SVC_SK_LIVE_SOME').and.contain('The terminal shows what is typed.').and.not.contain('svc_sk_live');
    });
  }
});

/** Runs a command on a terminal, and types once it asks. Instead of curl, a script prints its arguments, and what it reads in capitals. */
async function runOnTerminal(test: Mocha.Context, shell: string, command: string, typed: string): Promise<string> {
  if (!findProgram(shell)) skip(test, `${shell} isn't installed`);
  if (!findProgram('script')) skip(test, "script isn't installed");
  const directory = freshDirectory();
  writeFileSync(join(directory, 'curl'), `#!/bin/sh\ninput=$(cat); printf '%s\\n' "$@"; echo "$input" | tr a-z A-Z`, { mode: 0o700 });
  const after = `stty -a | grep -q ' echo ' && echo 'The terminal shows what is typed.'`;
  writeFileSync(join(directory, 'command'), `${command}\n${after}\n`);
  const env = { HOME: directory, PATH: `${directory}:${process.env['PATH']}` };
  const child = spawn('script', ['-qec', `${shell} ${join(directory, 'command')}`, '/dev/null'], { env, stdio: 'pipe' });
  let shown = '';
  child.stdout.on('data', (chunk) => {
    const isAsked = shown.includes('API key: ');
    shown += String(chunk);
    if (!isAsked && shown.includes('API key: ')) child.stdin.end(typed);
  });
  await once(child, 'close');
  return shown;
}
