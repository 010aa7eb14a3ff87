import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { newestNode } from '#contract/node-release.ts';
import { problemTable } from '#contract/problems.ts';
import { CallkeyError } from '../../cli/client/errors.ts';
import { minNodeVersion } from '../../cli/min-node-version.ts';
import { toFailure } from '../../cli/terminal/output.ts';
import { freePort } from '../../scripts/support/postgres.ts';
import { bareEnvironment } from '../support/commands.ts';
import { freshDirectory } from '../support/databases.ts';
import { findProgram, skip } from '../support/suites.ts';

const cwd = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(join(cwd, 'README.md'), 'utf8');

describe('README.md', () => {
  it('has commands that start a core with sample data and place calls, and the demo prints only what to paste', async function () {
    this.timeout(120_000);
    if (findProgram('curl') === undefined) skip(this, "curl isn't installed");
    const [start = '', ...others] = [...readme.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text);
    const calls = others.filter((block) => !block.startsWith('npm test'));
    expect(calls).to.have.length(2);
    const home = freshDirectory();
    const [port, managementPort] = [String(await freePort(10_000)), String(await freePort(10_000))];
    const state = { HOME: home, TMPDIR: home, XDG_RUNTIME_DIR: home, DATABASE_URL: `sqlite:${join(home, 'callkey.db')}` };
    const env = { ...bareEnvironment, ...state, PORT: port, MANAGEMENT_PORT: managementPort };
    // Everything but the installation, which would replace the packages of this test.
    expect(start).to.match(/^npm ci\n/);
    const core = spawn('bash', ['--norc', '-euc', start.replace('npm ci\n', '')], { cwd, env, detached: true });
    const ended = once(core, 'exit');
    const printed: string[] = [];
    try {
      for await (const line of createInterface({ input: core.stdout })) {
        printed.push(line);
        if (line.includes('"msg":"listening"')) break;
      }
      core.stdout.resume();
      const pasted = printed.slice(0, 5).join('\n');
      expect(pasted).to.match(/^(?:export [A-Z_]+=\S+\n){4}echo 'Sign in at http:\S+ as ada@harbour\.example, with the password \S+'$/);
      const place = (block = '') =>
        execFileSync('bash', ['--norc', '-euo', 'pipefail', '-c', `${pasted}\n${block}`], { cwd, env, encoding: 'utf8' });
      expect(place(calls[0]))
        .to.match(/^ok {4}key +accepted$/m)
        .and.match(/^Placed a call to \+493023125000\.$/m);
      const [first, second] = [place(calls[1]), place(calls[1])];
      expect(first).to.contain('"requestId":"order-4711"').and.contain('"state":"queued"');
      expect(second.split('\n').slice(1)).to.deep.equal(first.split('\n').slice(1));
    } finally {
      if (core.pid !== undefined && core.exitCode === null) process.kill(-core.pid, 'SIGTERM');
      await ended;
    }
  });

  it('has at most 600 words', () => {
    expect(readme.split(/\s+/).length).to.be.at.most(600);
  });
});

describe('the pages', () => {
  const pages = globSync(['*.md', '.github/*.md', '{core,cli,desktop,scripts,test}/**/*.md'], { cwd, exclude: ['**/node_modules/**'] });

  it('name the versions of Node.js that the packages and the tests use', () => {
    const { major, minor } = minNodeVersion;
    expect(readFileSync(join(cwd, 'core/docs/README.md'), 'utf8'))
      .to.contain(`| \`@callkey/cli\` | ${major} (from ${major}.${minor})`)
      .and.contain(`from ${newestNode.replace(/\.\d+$/, '')}`);
  });

  /** Returns the anchor that GitHub gives a heading. */
  const toAnchor = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
  const withoutCode = (text: string) => text.replaceAll(/^```.*?^```/gms, '');

  const anchorsOf = (page: string) =>
    [...withoutCode(readFileSync(join(cwd, page), 'utf8')).matchAll(/^#+ (.*)$/gm)].map(([, text = '']) => toAnchor(text));

  it('have the headings to which messages of the programs link', () => {
    const sources = globSync('{core,cli}/**/*.ts', { cwd }).map((path) => readFileSync(join(cwd, path), 'utf8'));
    const linked = sources.flatMap((source) => [...source.matchAll(/pageUrl\('([^'#]*)#([^']*)'\)/g)]);
    expect(linked).not.to.have.length(0);
    for (const [, page = '', anchor] of linked) expect(anchorsOf(page), page).to.include(anchor);
    for (const code of Object.keys(problemTable)) expect(anchorsOf('core/docs/problems.md')).to.include(code);
    const own = ['untrusted-certificate', 'proxy-refused', 'other-server', 'file-changed', 'run-cancelled'];
    for (const code of own) {
      const [, anchor = ''] = toFailure(new CallkeyError('failed', '', { code })).page?.split('#') ?? [];
      expect(anchorsOf('cli/README.md')).to.include(anchor);
    }
  });

  it('link only to files and headings that exist', () => {
    expect(pages).to.include('core/docs/README.md');
    const broken = pages.flatMap((page) =>
      [...withoutCode(readFileSync(join(cwd, page), 'utf8')).matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].flatMap(([, link = '']) => {
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? page : join(dirname(page), path);
        const isRight =
          existsSync(join(cwd, target)) && (anchor === undefined || !target.endsWith('.md') || anchorsOf(target).includes(anchor));
        return isRight ? [] : `${page}: ${link}`;
      }),
    );
    expect(broken).to.deep.equal([]);
  });

  it('have a header in each table, which a blank line would end', () => {
    const headless = pages.filter((page) => /^(?!\|).*\n\|.*\n(?!\| ?:?-)/m.test(readFileSync(join(cwd, page), 'utf8')));
    expect(headless).to.deep.equal([]);
  });
});
