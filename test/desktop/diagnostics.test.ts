import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { openConsole, signInAs } from '../support/console-harness.ts';
import { describeDesktop, listQuestions } from '../support/electron.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

describeDesktop("the app's log", () => {
  const harness = openOnce(() => openConsole({ env: { CHOSEN_BUTTON: 'Connect' } }));

  it('says what failed and can be copied with the versions, but contains nothing secret and nothing that was typed', async () => {
    const { page, core, tenants, desktop } = harness;
    const { keyValue, id } = await createKeyOn(harness, tenants.users.account, 'Unlogged');
    await signInAs(harness, 'account');
    await page.evaluate(
      async ([value, key]) => {
        await window.callkey.identifyApiKey(value);
        await window.callkey.request('changeApiKey', { id: key, addresses: ['not an address'] });
        await window.callkey.request('showUser' as never, { id: key } as never).catch(() => undefined);
        await window.callkey.request('listCalls', { search: '+4930123456', campaignId: 'none' } as never).catch(() => undefined);
        await window.callkey.signIn({
          server: 'http://127.0.0.1:1',
          email: 'mallory@example.com',
          password: 'a wrong password',
          keepSignedIn: false,
        });
      },
      [keyValue, id] as const,
    );
    await desktop.app.evaluate(({ Menu }) => {
      const items = Menu.getApplicationMenu()?.items.at(-1)?.submenu?.items ?? [];
      items.find(({ label }) => label === 'Copy &Diagnostics')?.click();
    });
    await eventually(async () => expect(await listQuestions(desktop)).to.have.length(2));
    const copied = await desktop.app.evaluate(({ clipboard }) => clipboard.readText());
    const file = join(desktop.userData, 'logs/console.log');
    const log = readFileSync(file, 'utf8');
    expect(copied)
      .to.match(/^Callkey \d+\.\d+\.\d+, Electron /)
      .and.include(`Server: ${core.url}, signed in`)
      .and.include('"event":"signed in"');
    expect(log)
      .to.include('"event":"started"')
      .and.match(/"request":"PATCH \/console\/api-keys\/:id","kind":"refused","reason":"invalid"/);
    expect(log).to.match(/"request":"GET \/console\/sign-in","kind":"unreachable","reason":"Connection refused/);
    for (const secret of [keyValue, password, 'a wrong password', tenants.users.account.email, 'mallory', '4930123456', 'Unlogged', id])
      expect(copied + log, secret).not.to.include(secret);
    if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).to.equal(0o600);
  });
});
