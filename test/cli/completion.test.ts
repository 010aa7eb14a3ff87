import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { CliHome, cliMain, runHeader } from '../support/cli.ts';
import { bareEnvironment } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** Prints what the shell itself suggests after a command line. zsh suggests only on a terminal, so it gets one (zsh/zpty). */
const asking: Record<Shell, (script: string, line: string, last: string) => string> = {
  bash: (script, line) => `
    source ${script}
    read -ra COMP_WORDS <<< "${line}"
    [[ "${line}" == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 ))
    _callkey 2>/dev/null
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (script, line, last) => `
    zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1=; LISTMAX=1000; autoload -Uz compinit; compinit -D; source ${script}; echo REA""DY'
    zpty -r -m shell offered '*READY*'
    zpty -w -n shell $'${line}\\t'
    zpty -r -m shell offered '*${last}*'
    print -r -- "$offered"
    zpty -d shell`,
  fish: (script, line) => `source ${script}; complete -C "${line}"`,
};

const isThere = (shell: Shell) => spawnSync(shell, ['-c', 'true']).status === 0;

describe('callkey completion', () => {
  /** Contains the command, which the scripts run to complete values. */
  const tools = freshDirectory();
  writeFileSync(join(tools, 'callkey'), `#!/bin/sh\nexec '${process.execPath}' '${cliMain}' "$@"\n`, { mode: 0o755 });

  for (const shell of shells) {
    describe(`in ${shell}`, () => {
      if (!isThere(shell)) {
        it.skip(`isn't tested: ${shell} isn't installed`);
        return;
      }
      const home = new CliHome();
      const script = join(home.directory, 'completion');
      before(async () => {
        const { code, stdout } = await home.run(['completion', shell]);
        expect(code).to.equal(0);
        writeFileSync(script, stdout);
      });
      /** @param last the end of the last suggestion, if the order is known */
      const offered = (line: string, last: string) => {
        const quiet = { zsh: ['-f'], bash: ['--norc'], fish: ['--no-config'] }[shell];
        const { stdout, stderr } = spawnSync(shell, [...quiet, '-c', asking[shell](script, line, last)], {
          encoding: 'utf8',
          env: { ...bareEnvironment, PATH: `${tools}:${process.env['PATH']}`, HOME: home.directory, TERM: 'dumb' },
          timeout: 60_000,
        });
        expect(stderr).to.equal('');
        // zsh beeps before it inserts the rest of a word.
        return stdout.replaceAll('\x07', '');
      };

      it('completes commands', () => {
        expect(offered('callkey call ', 'resume')).to.contain('place').and.contain('cancel').and.contain('resume');
      });

      it("completes a command's options after global options", () => {
        expect(offered('callkey --json call place --n', 'not-before')).to.contain('--not-before').and.contain('--not-after');
      });

      it("completes the profile's aliases and runs", async function () {
        // Each completion starts the shell and the command.
        this.timeout(180_000);
        const run = `${'0'.repeat(24)}5f3a9c01.jsonl`;
        const folder = join(home.directory, '.config/callkey');
        const state = join(home.directory, '.local/state/callkey/runs');
        for (const path of [folder, state]) mkdirSync(path, { recursive: true });
        writeFileSync(join(state, run), `${JSON.stringify(runHeader())}\n`);
        writeFileSync(join(folder, 'campaigns.json'), JSON.stringify({ default: { reminders: 'c' }, staging: { recalls: 'd' } }));
        expect(offered('callkey --profile staging call cancel rec', 'lls')).to.contain('recalls').and.not.contain('reminders');
        expect(offered('callkey call cancel --run 5f', 'c01')).to.contain('5f3a9c01');
      });

      it("never runs or offers names that a shell would interpret, such as an alias in someone else's campaigns.json", () => {
        const folder = join(home.directory, '.config/callkey');
        const trap = join(home.directory, 'trap');
        mkdirSync(folder, { recursive: true });
        const aliases = { [`$(touch ${trap})`]: 'c', [`x;touch ${trap}`]: 'c', [`x\ny`]: 'c', '*': 'c', xyz1: 'c', xyz2: 'c' };
        writeFileSync(join(folder, 'campaigns.json'), JSON.stringify({ default: aliases }));
        const names = offered('callkey call place ', 'xyz2');
        expect(existsSync(trap)).to.equal(false);
        expect(names).to.contain('xyz1').and.contain('xyz2').and.not.contain('touch').and.not.contain('*');
      });

      it('completes file names after --from', () => {
        writeFileSync(join(home.directory, 'contacts-1.csv'), '');
        expect(offered(`callkey call place --from ${home.directory}/contacts-`, 'contacts-1.csv')).to.contain('contacts-1.csv');
      });
    });
  }

  it('exits with 2 for an unknown shell', async () => {
    const { code, stderr } = await new CliHome().run(['completion', 'tcsh']);
    expect(code).to.equal(2);
    expect(stderr).to.contain('bash, zsh, fish.');
  });

  it('prints no help to the shell, even after --help', async () => {
    expect(await new CliHome().run(['complete', 'campaigns', 'call', 'place', '--help'])).to.include({ code: 0, stdout: '', stderr: '' });
  });
});
