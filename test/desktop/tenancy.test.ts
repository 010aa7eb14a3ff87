import { expect } from 'chai';
import { describeBrowser, pageForEach } from '../support/browser.ts';
import { sharedConsole, signInAs } from '../support/console-harness.ts';
import { chooseCommand, describeDesktop } from '../support/electron.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openForEach } from '../support/suites.ts';
import { eventually, until } from '../support/until.ts';

describeBrowser('the tenancy switcher', () => {
  const harness = pageForEach();
  beforeEach(async () => {
    for (const user of ['account', 'sibling', 'other'] as const) await createKeyOn(harness, harness.tenants.users[user], `Key of ${user}`);
    await harness.enter('staff');
  });

  const names = () => harness.page.locator('tbody th').allInnerTexts();

  it('finds an account using only the keyboard, to which the whole console switches, and whose campaigns a new key can access', async () => {
    const { page } = harness;
    const { keyboard } = page;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('dialog').getByRole('combobox').waitFor();
    await keyboard.type('clinic');
    await page.getByText('2 matches').waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await page.getByText('Selected Green Clinic, Northwind Voice.').waitFor();
    await page.getByRole('row', { name: 'Key of sibling' }).waitFor();
    await eventually(async () => expect(await names()).to.deep.equal(['Key of sibling']));
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('all campaigns in Green Clinic, Northwind Voice').waitFor();
    await keyboard.press('Escape');
    await page.getByRole('link', { name: 'Users' }).click();
    await page.getByRole('row', { name: 'Sue Sibling' }).waitFor();
    expect(await page.getByRole('row', { name: 'Tom Teammate' }).count()).to.equal(0);
    expect(await page.getByRole('columnheader', { name: 'Belongs to' }).count()).to.equal(0);
  });

  it('is also in Go to, which says what it searches, and moves the focus to the heading of the screen', async () => {
    const { page, tenants } = harness;
    const palette = page.getByRole('dialog', { name: 'Go to' });
    await page.getByText('Choose an account or partner first').waitFor();
    await page.keyboard.press('Control+k');
    await palette.getByText('Searches all accounts and partners. Select one to search its keys, users and campaigns.').waitFor();
    await palette.getByRole('combobox').fill('blue');
    await palette.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByRole('button', { name: /^Blue Clinic/ }).waitFor();
    await eventually(async () => expect(await page.evaluate('document.activeElement.textContent')).to.equal('API keys'));
    await page.keyboard.press('Control+k');
    await palette.getByText(`and keys, users and campaigns in ${tenants.account.name}.`).waitFor();
  });

  it('selects a partner, and can clear the selection, without which there are neither keys nor calls to show', async () => {
    const { page } = harness;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('dialog').getByRole('combobox').fill('northwind');
    await page.getByRole('option', { name: 'Northwind Voice Partner' }).click();
    await page.getByRole('row', { name: 'Key of sibling' }).waitFor();
    await eventually(async () => expect((await names()).toSorted()).to.deep.equal(['Key of account', 'Key of sibling']));
    await page.getByRole('button', { name: 'Northwind Voice' }).click();
    await page.getByRole('button', { name: 'Clear selection' }).click();
    await page.getByText('Choose an account or partner first').waitFor();
    await page.getByRole('link', { name: 'Calls' }).click();
    await page.getByRole('heading', { name: 'Calls', exact: true }).waitFor();
    await page.getByText('Choose an account or partner first').waitFor();
  });
});

describeDesktop('a menu command', () => {
  const open = sharedConsole();
  const harness = openForEach(() => open());

  it('works as soon as the screen is visible, before any frame or timer has run', async () => {
    const { page, desktop } = harness;
    await page.getByLabel('Server address').waitFor();
    // From here on, no frame or timer runs, and neither does code that waits for one.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await signInAs(harness, 'staff');
    await chooseCommand(desktop, 'switch-tenancy');
    await page.getByRole('dialog').getByRole('combobox').waitFor();
    // Otherwise, the page of the next test would keep the fake clock.
    await desktop.close();
  });

  it("is cleared on the sign-in screen, so that the next session doesn't start with it", async () => {
    const { page, desktop } = harness;
    await page.getByLabel('Server address').waitFor();
    await chooseCommand(desktop, 'sign-out');
    await chooseCommand(desktop, 'switch-tenancy');
    await signInAs(harness, 'staff');
    await page.getByText('Choose an account or partner first').waitFor();
    expect(await page.getByRole('dialog').getByRole('combobox').count()).to.equal(0);
  });

  it("is enabled only while it's available, and not while a dialog is open", async () => {
    await signInAs(harness, 'account');
    const offered = (name: string) =>
      harness.desktop.app.evaluate(({ Menu }, id) => Menu.getApplicationMenu()?.getMenuItemById(id)?.enabled, name);
    await until(async () => (await offered('new-api-key')) === true);
    expect({ switch: await offered('switch-tenancy'), users: await offered('show-users') }).to.deep.equal({ switch: false, users: false });
    const accelerators = await harness.desktop.app.evaluate(({ Menu }) =>
      (Menu.getApplicationMenu()?.items ?? []).flatMap(
        ({ submenu }) => submenu?.items.flatMap(({ id, visible, accelerator }) => (/^show-/.test(id) && visible ? accelerator : [])) ?? [],
      ),
    );
    expect(accelerators).to.deep.equal(['CmdOrCtrl+1', 'CmdOrCtrl+2', 'CmdOrCtrl+3', 'CmdOrCtrl+4']);
    await harness.page.getByRole('button', { name: 'Create API key' }).click();
    await until(async () => (await offered('new-api-key')) === false);
  });
});
