import { expect } from 'chai';
import { describeBrowser, openPage } from '../support/browser.ts';
import { sharedConsole, signInAs } from '../support/console-harness.ts';
import { chooseCommand, describeDesktop } from '../support/electron.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openForEach } from '../support/suites.ts';
import { eventually, until } from '../support/until.ts';

describeBrowser('the tenancy switcher', () => {
  const harness = openForEach(() => openPage());
  beforeEach(async () => {
    for (const user of ['account', 'sibling', 'other'] as const) await createKeyOn(harness, harness.tenants.users[user], `Key of ${user}`);
    await harness.enter('staff');
  });

  const names = () => harness.page.locator('tbody th').allInnerTexts();

  it('finds an account using only the keyboard, and the whole console switches to that account', async () => {
    const { page } = harness;
    const { keyboard } = page;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('dialog').getByRole('combobox').waitFor();
    await keyboard.type('clinic');
    await page.getByText('2 matches').waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await page.getByRole('row', { name: 'Key of sibling' }).waitFor();
    await eventually(async () => expect(await names()).to.deep.equal(['Key of sibling']));
    await page.getByRole('link', { name: 'Users' }).click();
    await page.getByRole('row', { name: 'Sue Sibling' }).waitFor();
    expect(await page.getByRole('row', { name: 'Tom Teammate' }).count()).to.equal(0);
    expect(await page.getByRole('columnheader', { name: 'Belongs to' }).count()).to.equal(0);
  });

  it('selects the first match for the typed text, even if Enter is pressed before the search returns', async () => {
    const { page } = harness;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('option').first().waitFor();
    await page.keyboard.insertText('Southgate');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Southgate Calling' }).waitFor();
  });

  it("moves the focus to the screen's heading after Ctrl+K has switched to another customer", async () => {
    const { page } = harness;
    await page.getByText('Choose an account or partner first').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('Southgate');
    await page.getByRole('option', { name: 'Southgate Calling' }).click();
    await page.getByRole('button', { name: 'Southgate Calling' }).waitFor();
    await eventually(async () => expect(await page.evaluate('document.activeElement.textContent')).to.equal('API keys'));
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

  it('shows which campaigns a staff key will have access to', async () => {
    const { page } = harness;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('dialog').getByRole('combobox').fill('blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByText('Selected Blue Clinic, Northwind Voice.').waitFor();
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('all campaigns in Blue Clinic, Northwind Voice').waitFor();
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
