import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { problemTable } from '#contract/problems.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { ask, openapi, overSocket } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';

const paths = ['/openapi.json', '/reference', '/reference/page.css', '/reference/place_call.py'];

describe('the reference on the public listener', () => {
  const core = openOnce(async () => startCoreHere(await freshDatabase('sqlite')));

  const send = (path: string, headers: readonly string[] = [], method = 'GET') =>
    overSocket(core.url, [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n'));

  it('describes only the three endpoints for keys, with everything that they refer to', async () => {
    const { text, headers } = await ask('GET', `${core.url}/openapi.json`);
    expect(headers['content-type']).to.equal('application/json');
    const document = JSON.parse(text);
    const keyPaths = Object.entries(openapi.paths).filter(([path]) => path.startsWith('/api/'));
    expect(keyPaths).to.have.length(3);
    expect(document.paths).to.deep.equal(Object.fromEntries(keyPaths));
    expect(text).not.to.match(/console|session|cookie|signature|handoff/i);
    for (const [, kind = '', name = ''] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      expect(document.components[kind], `${kind}/${name}`).to.have.property(name);
    }
  });

  it('lists every problem that a request with a key can get, and what to do about it', async () => {
    const { text: page } = await ask('GET', `${core.url}/reference`);
    const { text: document } = await ask('GET', `${core.url}/openapi.json`);
    const titles: string[] = Object.values(problemTable).map(({ title }) => title);
    const rows = [...page.matchAll(/<td><code>([\w-]+)<\/code><\/td><td>(.+)<\/td>/g)];
    const explained = rows.filter(([, , advice = '']) => !titles.includes(advice)).map(([, code]) => code);
    const described = [...document.matchAll(/urn:callkey:problems#([\w-]+)/g)].map(([, code]) => code);
    expect([...new Set(described)].filter((code) => !explained.includes(code))).to.deep.equal([]);
  });

  it('has examples in eight languages to download, and loads nothing but its own style sheet', async () => {
    const { text: page, headers } = await ask('GET', `${core.url}/reference`);
    expect(headers['content-type']).to.equal('text/html; charset=utf-8');
    expect(page).not.to.match(/<script|\{\{|undefined|style=/);
    const linked = [...page.matchAll(/(?:href|src)="([^#"]+)"/g)].map(([, path]) => path ?? '');
    expect(linked).to.have.length(10);
    for (const path of linked) {
      const { status, text } = await ask('GET', new URL(path, `${core.url}/reference`).href);
      expect(status, path).to.equal(200);
      expect(text === '', path).to.equal(false);
    }
  });

  it('has the same table of simulated outcomes as core/docs/rehearsing.md', async () => {
    const { text: page } = await ask('GET', `${core.url}/reference`);
    const rows = [...page.matchAll(/<td>(\d\d to \d\d)<\/td><td><code>(\w+)<\/code><\/td><td>(\d+ s)<\/td><td>(\d+ s)<\/td>/g)];
    const rehearsing = readFileSync(new URL('../../core/docs/rehearsing.md', import.meta.url), 'utf8');
    expect(rows).to.have.length(4);
    for (const [, digits, state, ends, plus] of rows) expect(rehearsing).to.contain(`| ${digits} | \`${state}\` | ${ends} | ${plus} |`);
  });

  it('shows only phone numbers that are reserved for films', async () => {
    const { text } = await ask('GET', `${core.url}/reference`);
    for (const [number] of text.matchAll(/\+\d{7,15}/g)) expect(number).to.match(/^\+493023125\d{3}$/);
  });

  for (const path of paths) {
    it(`returns the common 401 for ${path} with a key, or with another method`, async () => {
      const refusal = await send('/console/session');
      for (const value of ['svc_sk_live_whatever', '']) expect(await send(path, [`X-API-Key: ${value}`])).to.equal(refusal);
      expect(await send(path, [], 'POST')).to.equal(refusal);
    });
  }
});
