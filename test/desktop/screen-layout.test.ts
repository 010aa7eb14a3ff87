import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { operator } from '../../core/domain/audit/audit.ts';
import { createAccount } from '../../core/domain/directory/directory.ts';
import { browserForAll, describeBrowser } from '../support/browser.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually, until } from '../support/until.ts';

describeBrowser('the console in a browser window', () => {
  const browser = browserForAll(async (harness) => {
    for (let index = 0; index < 12; index++) await createKeyOn(harness, harness.tenants.users.teammate, `Appointment importer ${index}`);
  });
  const { page, button, resize, goTo } = browser;
  const rows = () => page().locator('tbody tr');
  const readTop = async (element: Locator) => Math.round((await element.boundingBox())?.y ?? 0);

  it('keeps the buttons in place when the preview of a deletion arrives', async () => {
    for (const width of [1280, 480]) {
      await resize(width);
      await goTo('Users');
      const arrival = Promise.withResolvers<void>();
      browser.network.faults.push({ path: '/deletion', fault: arrival.promise });
      await page().getByRole('row', { name: 'Tom Teammate' }).getByRole('button').click();
      const dialog = page().getByRole('alertdialog', { name: 'Delete Tom Teammate?' });
      await dialog.getByText('Loading keys…').waitFor();
      const remove = dialog.getByRole('button', { name: 'Delete', exact: true });
      const before = await remove.boundingBox();
      arrival.resolve();
      await dialog.getByText('12 API keys will stop working').waitFor();
      expect(await remove.boundingBox(), `at ${width}`).to.deep.equal(before);
      await button('Cancel').click();
    }
  });

  it('keeps the links to all screens on one line, under the name and the other buttons, at 768 px', async () => {
    await resize(768);
    const { links, others } = {
      links: await page().getByRole('navigation', { name: 'Screens' }).getByRole('link').all(),
      others: ['Go to…', 'Help', 'Your account', 'Sign out'].map((name) => button(name)),
    };
    const [linkTops, otherTops] = await Promise.all([links, others].map(async (all) => new Set(await Promise.all(all.map(readTop)))));
    expect([linkTops?.size, otherTops?.size]).to.deep.equal([1, 1]);
    expect(Math.max(...(otherTops ?? []))).to.be.lessThan(Math.min(...(linkTops ?? [])));
  });

  it('shows the description and address of an event in full at 768 px', async () => {
    await resize(768);
    await goTo('Activity');
    const row = page().getByRole('row', { name: 'Created the API key Appointment importer 11' });
    await row.getByText('192.0.2.17').and(page().locator(':visible')).waitFor();
    const cut = await row.locator('th .clip').evaluateAll((all) => all.map((each) => each.scrollWidth - each.clientWidth));
    expect(cut).to.deep.equal([0]);
  });

  it('shows the first key in the upper half of a phone, and a whole row at 200%', async () => {
    for (const [width, height, limit] of [
      [390, 844, 422],
      [640, 400, 400],
    ] as const) {
      await page().setViewportSize({ width, height });
      await goTo('API keys');
      const { y = 0, height: rowHeight = 0 } = (await rows().first().boundingBox()) ?? {};
      expect(y + (width === 390 ? 24 : rowHeight), `at ${width}`).to.be.at.most(limit);
    }
  });

  it('offers rarely used actions in a menu, with the keyboard, too', async () => {
    await resize(1280);
    await goTo('Users');
    await page().getByRole('row', { name: 'Tom Teammate' }).focus();
    await page().keyboard.press('Enter');
    await button('More').press('Enter');
    const focused = page().locator('button:focus');
    await eventually(async () => expect(await focused.innerText()).to.equal('Reset password…'));
    await page().keyboard.press('ArrowDown');
    await eventually(async () => expect(await focused.innerText()).to.equal('Disable…'));
    await page().keyboard.press('Escape');
    await eventually(async () => expect((await focused.innerText()).trim()).to.equal('More'));
    expect(await page().getByRole('complementary').count()).to.equal(1);
    await page().keyboard.press('Escape');
  });

  it('keeps a dialog where it is when it grows, and marks the chosen expiration in forced colors', async () => {
    await resize(1280);
    await goTo('API keys');
    await button('Create API key').click();
    const dialog = page().getByRole('dialog', { name: 'Create API key' });
    const before = await readTop(dialog);
    await page().getByRole('radio', { name: 'Custom', exact: true }).check();
    await page().getByLabel('Last day').waitFor();
    await button('Create Key').click();
    await page().getByText('Enter a name for the key.').waitFor();
    expect(await readTop(dialog)).to.equal(before);
    await page().emulateMedia({ forcedColors: 'active' });
    const outlines = await page()
      .locator('.choice')
      .evaluateAll((all) => all.map((each) => getComputedStyle(each).outlineStyle));
    expect(outlines.filter((style) => style === 'solid')).to.have.length(1);
    await page().emulateMedia({ forcedColors: 'none' });
    await button('Cancel').click();
    await button('Discard')
      .or(page().getByRole('heading', { name: 'API keys' }))
      .first()
      .click();
  });

  it("doesn't repeat the server's address, which the browser shows", async () => {
    const { host } = new URL(page().url());
    // A frame after the screen.
    await page().waitForFunction('document.title !== "Callkey"');
    expect([await page().title(), await page().locator('body').innerText()].join(' ')).not.to.include(host);
  });

  it("offers to reset filters that the viewer can't use", async () => {
    await resize(1280);
    await goTo('Users');
    await page().evaluate(`location.hash = '#/calls?apiKey=someone-elses'`);
    await page().getByText("This API key doesn't exist, or you don't have access to it.").waitFor();
    await button('Show all calls').click();
    await page().getByRole('heading', { name: 'No calls yet' }).waitFor();
    await page().evaluate(`location.hash = '#/activity?action=constructor'`);
    await button('Show all activity').click();
    await page().getByRole('row', { name: 'Created the API key Appointment importer 11' }).waitFor();
  });

  it('can sort and select rows whose cells are stacked in a narrow window', async () => {
    await resize(480);
    await goTo('API keys');
    await page().getByLabel('Sort by').selectOption('Name');
    await rows().first().getByText('Appointment importer 0', { exact: true }).waitFor();
    await button('Sort descending').click();
    await rows().first().getByText('Appointment importer 11', { exact: true }).waitFor();
    await page().getByLabel('Select all listed').check();
    await page().getByText('12 keys selected').waitFor();
    await button('Clear').click();
  });

  it('prints all keys, not only those on the current page', async () => {
    await resize(1280);
    await goTo('API keys');
    await page().getByLabel('Rows per page').selectOption('10');
    await eventually(async () => expect(await rows().count()).to.equal(10));
    await page().evaluate("dispatchEvent(new Event('beforeprint'))");
    await eventually(async () => expect(await rows().count()).to.equal(12));
    await page().evaluate("dispatchEvent(new Event('afterprint'))");
    await eventually(async () => expect(await rows().count()).to.equal(10));
  });

  it('says that the account already exists if it was created but the response was lost', async () => {
    await resize(1280);
    await goTo('Directory');
    await button('Create account').click();
    const dialog = page().getByRole('dialog', { name: 'Create account' });
    await dialog.getByLabel('Name').fill('Yellow Clinic');
    await until(() => browser.network.seen.some(({ path }) => path.includes('search=Yellow')));
    await createAccount(browser.harness.direct.ports, operator, 'Yellow Clinic', browser.harness.tenants.partner.id);
    browser.network.faults.push({ path: '/directory/accounts', method: 'POST', fault: { status: 502 } });
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog.getByText('Account Yellow Clinic already exists.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  it('warns that a user or another account already has a name, even one in other letters, when creating or renaming', async () => {
    const { users, siblingAccount } = browser.harness.tenants;
    await resize(1280);
    for (const [screen, open, title, taken, warning] of [
      ['Users', 'Create user', 'Create user', users.tied.name, 'A user with this name already exists.'],
      ['Directory', `Rename ${siblingAccount.name}`, 'Rename account', 'Blue Clinic', 'Account ＢＬÜＥ CLINIC already exists.'],
    ] as const) {
      await goTo(screen);
      if (screen === 'Directory') await page().getByRole('row', { name: siblingAccount.name }).click();
      await button(screen === 'Users' ? open : 'Rename…').click();
      const dialog = page().getByRole('dialog', { name: title });
      const name = dialog.getByLabel('Name', { exact: true });
      await name.fill(taken === 'Blue Clinic' ? 'ＢＬÜＥ CLINIC' : taken.toUpperCase());
      await dialog.getByText(warning).waitFor();
      await name.fill(taken === 'Blue Clinic' ? siblingAccount.name : 'No one else');
      await dialog.getByText(warning).waitFor({ state: 'detached' });
      await dialog.getByRole('button', { name: 'Cancel' }).click();
    }
  });

  it('deletes an account to which nothing belongs, and says what is left otherwise', async () => {
    const { direct, tenants } = browser.harness;
    await createAccount(direct.ports, operator, 'Short Clinic', tenants.partner.id);
    await resize(1280);
    await goTo('Activity');
    await goTo('Directory');
    const dialog = page().getByRole('alertdialog', { name: 'Delete account?' });
    const remove = async (name: string, belongings: string) => {
      await page().getByRole('row', { name }).click();
      await button('Delete…').click();
      await dialog.getByText(`${name} will be deleted permanently. Nothing may belong to it anymore${belongings}.`).waitFor();
      await dialog.getByRole('button', { name: 'Delete account' }).click();
    };
    await remove('Blue Clinic', ', but it has 1 campaign');
    await dialog.getByText("Blue Clinic can't be deleted, because it has 1 campaign").waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await remove('Short Clinic', '');
    await dialog.waitFor({ state: 'detached' });
    await page().getByRole('row', { name: 'Short Clinic' }).waitFor({ state: 'detached' });
  });

  it('shows all spaces in a name', async () => {
    const { direct, tenants } = browser.harness;
    const name = tenants.users.account.name.replace(' ', '   ');
    await direct.storage.database.write('users').where({ id: tenants.users.account.id }).update({ name });
    await goTo('Activity');
    await goTo('Users');
    await page().getByRole('row', { name: 'ada@example.com' }).click();
    for (const shown of ['tbody bdi', 'aside h2'])
      await eventually(async () => {
        const texts = await page()
          .locator(shown)
          .evaluateAll((elements) => elements.map(({ textContent }) => textContent));
        expect(texts, shown).to.include(name);
      });
    const collapsing = await page().evaluate(() => {
      const all = [...document.querySelectorAll('body :not(select, option, textarea, input)')];
      return all.filter((element) => getComputedStyle(element).whiteSpaceCollapse === 'collapse').map(({ tagName }) => tagName);
    });
    expect(collapsing).to.deep.equal([]);
  });

  it('wraps a name of 200 letters in the title and in the message of a deletion', async () => {
    const { direct, tenants } = browser.harness;
    const name = 'Donaudampfschifffahrtsgesellschaft'.repeat(6).slice(0, 200);
    await direct.storage.database.write('users').where({ id: tenants.users.sibling.id }).update({ name });
    await resize(1280);
    await goTo('Activity');
    await goTo('Users');
    await page()
      .getByRole('button', { name: `Delete ${name}` })
      .click();
    const title = page().getByRole('alertdialog').getByRole('heading');
    expect(await title.evaluate((each) => each.scrollWidth - each.clientWidth)).to.equal(0);
    await page().getByRole('alertdialog').getByText('This user has no API keys.').waitFor();
    await page().getByRole('alertdialog').getByRole('button', { name: 'Delete', exact: true }).click();
    const message = page().getByRole('status').filter({ hasText: 'was deleted' }).locator('p');
    expect((await message.boundingBox())?.width).to.be.lessThan(600);
  });
});
