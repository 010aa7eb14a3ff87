import { expect } from 'chai';
import { describeBrowser, openPage } from '../support/browser.ts';
import { openWithKeys, type UserName, untilFocused } from '../support/console-harness.ts';
import { openForEach } from '../support/opened.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually } from '../support/until.ts';

describeBrowser('the screens for API keys', () => {
  const harness = openForEach(() => openPage());
  const button = (name: string | RegExp) => harness.page.getByRole('button', { name, exact: typeof name === 'string' });
  const row = (name: string) => harness.page.getByRole('row', { name });
  const press = (key: string) => harness.page.keyboard.press(key);
  const names = () => harness.page.getByRole('grid').locator('tbody th').allInnerTexts();
  const panel = () => harness.page.getByRole('complementary');
  const dialog = (name: string) => harness.page.getByRole('alertdialog', { name });

  const list = (names: readonly string[], user?: UserName) => openWithKeys(harness, names, user);

  it('warn about keys that expire within 30 days', async () => {
    const soon = new Date(Date.now() - 360 * 86_400_000).toISOString();
    await createKeyOn(harness, harness.tenants.users.account, 'Zapier', { on: soon, expiration: { kind: 'years', years: 1 } });
    await list(['Endless']);
    await button('One key expires within 30 days').focus();
    await harness.page
      .getByRole('tooltip', { name: /^Zapier, on / })
      .or(harness.page.getByText(/^Zapier, on /))
      .first()
      .waitFor();
    await button('One key expires within 30 days').click();
    await eventually(async () => expect(await names()).to.deep.equal(['Zapier']));
    await row('Zapier')
      .getByText(/^in [3-6] days$/)
      .waitFor();
  });

  it("show a key's access, calls by day and activity, its access in the dialogs that save and revoke it, and a warning about a name that another key has", async () => {
    await list(['One']);
    await row('One').click();
    await panel().getByText('All campaigns in Blue Clinic').waitFor();
    await panel().getByText('No calls placed in the last 30 days').waitFor();
    await panel().getByText('You created this API key').waitFor();
    await button('Create API key').click();
    await harness.page.getByLabel('Name', { exact: true }).fill('ＯNÉ');
    await harness.page.getByText('A key with this name already exists.').waitFor();
    await harness.page.getByLabel('Name', { exact: true }).fill('Two');
    await harness.page.getByRole('radio', { name: 'No expiration', exact: true }).check();
    await button('Create Key').click();
    await dialog('Save your key').getByText('This key has access to all campaigns in Blue Clinic and works until it’s revoked.').waitFor();
    await button("I've Saved It").click();
    await button('Revoke Two').click();
    await dialog('Revoke API Key?').getByText('It has access to all campaigns in Blue Clinic.').waitFor();
  });

  it('keep a selection across pages, and name each selected key with its creator before revoking them', async () => {
    for (let index = 0; index < 12; index++) {
      const on = `2026-01-${10 + index}T08:00:00.000Z`;
      await createKeyOn(harness, harness.tenants.users.account, `Key ${index}`, { on });
    }
    await list([], 'partner');
    const pick = async (name: string) => {
      await row(name).focus();
      await press('Space');
    };
    await harness.page.getByLabel('Rows').selectOption('10');
    await pick('Key 11');
    await button('Next page').click();
    await pick('Key 0');
    await button('Revoke 2 keys…').click();
    await eventually(async () => {
      const named = await dialog('Revoke 2 API keys?').locator('tbody tr').allInnerTexts();
      expect(named.map((text) => text.split(/\s*[\t\n]\s*/)).map((texts) => [texts[0], texts[2]])).to.deep.equal([
        ['Key 11', 'Ada Account'],
        ['Key 0', 'Ada Account'],
      ]);
    });
    await untilFocused(dialog('Revoke 2 API keys?').getByRole('button', { name: 'Cancel' }));
    await dialog('Revoke 2 API keys?').getByRole('button', { name: 'Revoke 2 keys' }).click();
    await harness.page.getByText('2 keys were revoked.').waitFor();
    await harness.page.getByText('10 keys', { exact: false }).first().waitFor();
    const left: string[] = await harness.direct.storage.database.read('api_keys').orderBy('created_at').pluck('name');
    expect(left).to.deep.equal(Array.from({ length: 10 }, (_, index) => `Key ${index + 1}`));
  });

  it('make the user type the number of keys before revoking more than ten', async () => {
    for (let index = 0; index < 11; index++) await createKeyOn(harness, harness.tenants.users.account, `Key ${index}`);
    await list([]);
    await harness.page.getByLabel('Select all on this page').check();
    await button('Revoke 11 keys…').click();
    const confirm = dialog('Revoke 11 API keys?').getByRole('button', { name: 'Revoke 11 keys' });
    await confirm.click({ force: true });
    await eventually(async () => expect(await confirm.getAttribute('aria-disabled')).to.equal('true'));
    await harness.page.getByLabel('To revoke 11 keys, type 11').fill('11');
    await confirm.click();
    await harness.page.getByText('No API keys yet').waitFor();
  });

  it('replace a key with a new key of the same name and expiration, and show both keys', async () => {
    await createKeyOn(harness, harness.tenants.users.account, 'Zapier', { expiration: { kind: 'years', years: 2 } });
    await list([]);
    await row('Zapier').click();
    await button('Replace…').click();
    await harness.page.getByRole('radio', { name: '2 Years', checked: true }).waitFor();
    await harness.page.getByText('The old key has access to all campaigns in Blue Clinic.').waitFor();
    await button('Create Key').click();
    await button("I've Saved It").click();
    await panel().getByText('Keys with this name').waitFor();
    await eventually(async () => expect(await panel().locator('tbody tr').count()).to.equal(2));
    const covers = (cells: (HTMLElement | SVGElement)[]) =>
      cells.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length;
    expect(await panel().locator('td').evaluateAll(covers)).to.equal(0);
    await eventually(async () =>
      expect((await names()).map((name) => name.replace(/\n…\w{6}$/, ' and its ID'))).to.deep.equal([
        'Zapier and its ID',
        'Zapier and its ID',
      ]),
    );
  });

  it('say that an expired key no longer works', async () => {
    await createKeyOn(harness, harness.tenants.users.account, 'Old', {
      on: '2024-01-01T00:00:00.000Z',
      expiration: { kind: 'years', years: 1 },
    });
    await list([]);
    await row('Old').focus();
    await press('Delete');
    await dialog('Revoke API Key?').getByText('has expired and no longer works').waitFor();
    await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
    await harness.page.getByText('Old was revoked.', { exact: true }).waitFor();
  });
});
