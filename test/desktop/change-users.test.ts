import { expect } from 'chai';
import { describeBrowser, type Home, openInChromium, violationsOn } from '../support/browser.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';

describeBrowser('a partner user', () => {
  let harness: CoreHarness;
  let home: Home;
  let keyValue: string;

  before(async () => {
    harness = await openCore();
    ({ keyValue } = await createKeyOn(harness, harness.tenants.users.teammate, 'Practice software'));
    await createKeyOn(harness, harness.tenants.users.account, 'Of Ada');
    home = await openInChromium(harness.core.url);
    await signInAs({ ...harness, page: page() }, 'partner');
  });
  after(async () => {
    await home?.close();
    await harness?.close();
  });

  const page = () => home.page;
  const link = (name: string) => page().getByRole('link', { name, exact: true });
  const button = (name: string) => page().getByRole('button', { name, exact: true });
  const inDialog = (name: string) =>
    page().getByRole('alertdialog').or(page().getByRole('dialog')).getByRole('button', { name, exact: true });
  const place = async () => (await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue)).status;

  it('disables a user, sees their keys marked as refused, and enables them again', async () => {
    await link('Users').click();
    await page()
      .getByRole('row', { name: /tom@example.com/ })
      .click();
    await button('More').click();
    await button('Disable…').click();
    await inDialog('Disable').click();
    await page().getByText('User Tom Teammate was disabled.').waitFor();
    expect(await place()).to.equal(401);

    await link('Show API keys').click();
    await page()
      .getByRole('row', { name: /Of Ada/ })
      .waitFor({ state: 'detached' });
    await page()
      .getByRole('row', { name: /Practice software.*Refused/ })
      .click();
    await page().getByRole('complementary').getByText('Refused: owner disabled').waitFor();
    expect(await violationsOn(page())).to.deep.equal([]);

    await link('Users').click();
    await page()
      .getByRole('row', { name: /tom@example.com/ })
      .click();
    await button('More').click();
    await button('Enable…').click();
    await inDialog('Enable').click();
    await page().getByText('User Tom Teammate was enabled.').waitFor();
    expect(await place()).to.equal(202);
  });

  it("renames a user, and moves them to another of the partner's accounts", async () => {
    await button('Edit…').click();
    await page().getByRole('dialog').getByLabel('Name', { exact: true }).fill('Thomas');
    await page().getByRole('dialog').getByLabel('Account', { exact: true }).selectOption(harness.tenants.siblingAccount.name);
    await inDialog('Save').click();
    await page().getByText('User Thomas was changed.').waitFor();
    await page()
      .getByRole('row', { name: /Thomas.*Green Clinic/ })
      .waitFor();
    expect(await place()).to.equal(403);
  });

  it("moves a user without undoing a rename by someone else, and sees the form close if it's saved unchanged", async () => {
    await button('Edit…').click();
    await harness.direct.storage.database.write('users').where({ email: 'tom@example.com' }).update({ name: 'Tommy' });
    await page().getByRole('dialog').getByLabel('Account', { exact: true }).selectOption(harness.tenants.account.name);
    await inDialog('Save').click();
    await page().getByText('User Tommy was changed.').waitFor();
    await button('Edit…').click();
    await inDialog('Save').click();
    await page().getByRole('dialog').waitFor({ state: 'detached' });
  });
});
