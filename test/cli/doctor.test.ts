import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { CliHome } from '../support/cli.ts';
import { freshDirectory } from '../support/databases.ts';
import { sharedIntegrator } from '../support/integrator.ts';

describe('callkey doctor', () => {
  const its = sharedIntegrator();

  const examine = async (args: string[], environment: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await its.home.run(['doctor', ...args, '--json'], { environment });
    const {
      ok,
      checks,
      code: problem,
    }: { ok: boolean; code?: string; checks: { check: string; ok: boolean; detail: string }[] } = JSON.parse(stdout);
    // Other programs read an error from the last line of standard error.
    const told = stderr.trim().split('\n').at(-1) || undefined;
    if (ok) expect(told).to.equal(undefined);
    else expect(JSON.parse(told ?? '').error).to.include({ code: problem, exitCode: code });
    const failed = checks.filter((check) => !check.ok).map(({ check }) => check);
    return { code, ok, problem, failed, checks: new Map(checks.map(({ check, detail }) => [check, detail])), stderr };
  };

  it('checks the server, clock, key and campaign without placing or cancelling a call', async () => {
    const before = await its.direct.storage.database.read('calls');
    const { code, ok, failed, checks } = await examine([its.tenants.campaign.id]);
    expect(code).to.equal(0);
    expect(ok).to.equal(true);
    expect(failed).to.deep.equal([]);
    expect([...checks.keys()]).to.deep.equal(['version', 'server', 'connection', 'clock', 'key', 'campaign']);
    expect(checks.get('campaign')).to.contain(its.tenants.campaign.id);
    expect(its.network.seen.map(({ method }) => method)).to.deep.equal(['DELETE']);
    expect(await its.direct.storage.database.read('calls')).to.deep.equal(before);
    const { stdout } = await its.home.run(['doctor', its.tenants.campaign.id]);
    expect(stdout)
      .to.match(/^ok {4}server {6,}http/m)
      .and.not.match(/FAIL/);
  });

  it('checks the key even without a campaign', async () => {
    const { code, checks } = await examine([]);
    expect([code, checks.get('key')]).to.deep.equal([0, 'accepted']);
    expect(checks.get('campaign')).to.contain('not checked');
  });

  it('exits with the same code as placing a call would, and says what is wrong', async () => {
    const refusedKey = { CALLKEY_API_KEY: makeKeyValue(randomBytes) };
    expect(await examine([its.tenants.campaign.id], refusedKey)).to.deep.include({ code: 3, problem: 'unauthorized', failed: ['key'] });
    expect(await examine([its.tenants.otherCampaign.id])).to.deep.include({ code: 4, problem: 'campaign-refused', failed: ['campaign'] });
    expect(await examine([], { CALLKEY_SERVER: 'http://127.0.0.1:1' })).to.deep.include({ code: 7, failed: ['server'] });
    expect(await examine([], { CALLKEY_API_KEY: '' })).to.deep.include({ code: 2, failed: ['settings'] });
    expect(await examine(['a b'])).to.deep.include({ code: 2, failed: ['settings'] });
  });

  it("says so if the server isn't a Callkey server", async () => {
    for (const [status, code] of [
      [200, 1],
      [401, 3],
      [404, 6],
      [302, 1],
    ] as const) {
      its.network.faults.push({ status, body: '{}' });
      expect(await examine([its.tenants.campaign.id])).to.deep.include({ code, failed: ['server'] });
    }
  });

  it('reports a wrong clock', async () => {
    const problem = JSON.stringify({ type: 'urn:callkey:problems#call-not-found', title: 'x', status: 404, detail: 'x' });
    its.network.faults.push({ status: 404, headers: { Date: 'Sun, 22 Nov 2020 12:00:00 GMT' }, body: problem });
    const { code, failed, checks } = await examine([its.tenants.campaign.id]);
    expect([code, failed]).to.deep.equal([1, ['clock']]);
    expect(checks.get('clock')).to.match(/ahead of the server's/);
    expect(checks.get('campaign')).to.contain('has access to');
  });

  it('lists several problems in the order in which to fix them, and links to the page about the last one', async () => {
    const problem = JSON.stringify({ type: 'urn:callkey:problems#unauthorized', title: 'x', status: 401, detail: 'x' });
    its.network.faults.push({ status: 401, headers: { Date: 'Sun, 22 Nov 2020 12:00:00 GMT' }, body: problem });
    const { code, stdout } = await its.home.run(['doctor']);
    expect(code).to.equal(3);
    expect(stdout).to.match(
      /^FAIL {2}clock .+\nFAIL {2}key .*CALLKEY_API_KEY, which overrides any stored key.+\nFix the first problem first: .+\nSee https:\S+problems\.md#unauthorized$/m,
    );
  });

  describe('the check for a newer version', () => {
    for (const [what, environment, published, isSuggested] of [
      ['suggests a newer version from npm if CALLKEY_UPDATE_NOTICE is on', { CALLKEY_UPDATE_NOTICE: 'on' }, ['99.0.0'], true],
      ["doesn't suggest an older version", { CALLKEY_UPDATE_NOTICE: 'on' }, ['0.0.9', '0.0.10', '0.1.0'], false],
      ["doesn't run unless requested", {}, ['99.0.0'], false],
      ["doesn't run in CI", { CALLKEY_UPDATE_NOTICE: 'on', CI: 'true' }, ['99.0.0'], false],
    ] as const) {
      it(what, async () => {
        for (const version of published) {
          const directory = freshDirectory();
          writeFileSync(join(directory, 'npm'), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
          const { checks } = await examine([], { PATH: `${directory}:${process.env['PATH']}`, ...environment });
          expect(checks.get('version')?.includes(`${version} is available`), version).to.equal(isSuggested);
        }
      });
    }
  });
});

describe("a command's campaign", () => {
  const id = '01a1fe41-7a16-7a72-961d-cbc837d17e8f';
  const wouldCall = async (home: CliHome, args: string[], environment: Record<string, string> = {}) => {
    const { code, stdout } = await home.run(['call', 'place', ...args, '--phone', '+493012345678', '--dry-run', '--json'], { environment });
    return code === 0 ? JSON.parse(stdout).campaignId : code;
  };

  it('can be given by its alias', async () => {
    const home = new CliHome();
    expect((await home.run(['campaign', 'alias', 'reminders', id])).code).to.equal(0);
    expect(await wouldCall(home, ['reminders'])).to.equal(id);
    expect((await home.run(['campaign', 'alias', 'other', 'reminders'])).stdout).to.contain(id);
    expect(await wouldCall(home, ['other'])).to.equal(id);
    await home.run(['campaign', 'forget', 'other']);
    expect(JSON.parse((await home.run(['campaign', 'list', '--json'])).stdout)).to.deep.equal({
      campaigns: [{ alias: 'reminders', campaignId: id }],
    });
    expect(await wouldCall(home, ['reminders', '--profile', 'staging'])).to.equal('reminders');
    expect((await home.run(['campaign', 'forget', 'reminders'])).code).to.equal(0);
    expect((await home.run(['campaign', 'forget', 'reminders'])).code).to.equal(6);
    expect(await wouldCall(home, ['reminders'])).to.equal('reminders');
  });

  it("can have an alias or a profile whose name is that of a property of every object, and doesn't have one by itself", async () => {
    const home = new CliHome();
    expect(await wouldCall(home, ['constructor'])).to.equal('constructor');
    expect(await wouldCall(home, ['name', '--profile', 'constructor'])).to.equal('name');
    expect((await home.run(['campaign', 'forget', 'constructor'])).code).to.equal(6);
    for (const more of [[], ['--profile', 'constructor']]) {
      expect((await home.run(['campaign', 'alias', 'constructor', id, ...more])).code).to.equal(0);
      expect(await wouldCall(home, ['constructor', ...more])).to.equal(id);
    }
  });

  it('defaults to CALLKEY_CAMPAIGN', async () => {
    const home = new CliHome();
    await home.run(['campaign', 'alias', 'reminders', id]);
    expect(await wouldCall(home, [], { CALLKEY_CAMPAIGN: 'reminders' })).to.equal(id);
    expect(await wouldCall(home, [id], { CALLKEY_CAMPAIGN: 'reminders' })).to.equal(id);
  });

  it('may have the line end of Windows after its ID or alias', async () => {
    const home = new CliHome();
    await home.run(['campaign', 'alias', 'reminders', id]);
    expect(await wouldCall(home, [`${id}\r`])).to.equal(id);
    for (const text of [`reminders\r`, `${id}\r\n`]) expect(await wouldCall(home, [], { CALLKEY_CAMPAIGN: text })).to.equal(id);
  });

  it("can't have an alias that looks like an ID or an option", async () => {
    for (const name of [id, '1st', 'a b', '']) expect((await new CliHome().run(['campaign', 'alias', name, id])).code).to.equal(2);
    expect((await new CliHome().run(['campaign', 'alias', 'reminders', '..'])).code).to.equal(2);
  });
});
