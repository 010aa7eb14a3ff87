import { expect } from 'chai';
import { describeBrowser, openPage, violationsOn } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { placeCall } from '../support/tenants.ts';

describeBrowser('a partner user', () => {
  const harness = openOnce(() => openPage());
  let keyValue: string;
  before(async () => {
    ({ keyValue } = await createKeyOn(harness, harness.tenants.users.teammate, 'Practice software'));
    await createKeyOn(harness, harness.tenants.users.account, 'Of Ada');
    await harness.enter('partner');
  });

  const { link, button, row, panel, dialog } = finders(() => harness.page);
  const text = (content: string) => harness.page.getByText(content).waitFor();
  const inDialog = (name: string) => dialog().getByRole('button', { name, exact: true });
  const place = async () => (await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue)).status;

  it('disables a user, sees their keys marked as refused, and enables them again', async () => {
    await link('Users').click();
    await row(/tom@example.com/).click();
    await button('More').click();
    await button('Disable…').click();
    await inDialog('Disable').click();
    await text('User Tom Teammate was disabled.');
    expect(await place()).to.equal(401);

    await link('Show API keys').click();
    await row(/Of Ada/).waitFor({ state: 'detached' });
    await row(/Practice software.*Refused/).click();
    await panel().getByText('Refused: owner disabled').waitFor();
    expect(await violationsOn(harness.page)).to.deep.equal([]);

    await link('Users').click();
    await row(/tom@example.com/).click();
    await button('More').click();
    await button('Enable…').click();
    await inDialog('Enable').click();
    await text('User Tom Teammate was enabled.');
    expect(await place()).to.equal(202);
  });

  it("renames a user, and moves them to another of the partner's accounts", async () => {
    await button('Edit…').click();
    await dialog().getByLabel('Name', { exact: true }).fill('Thomas');
    await dialog().getByLabel('Account', { exact: true }).selectOption(harness.tenants.siblingAccount.name);
    await inDialog('Save').click();
    await text('User Thomas was changed.');
    await row(/Thomas.*Green Clinic/).waitFor();
    expect(await place()).to.equal(403);
  });

  it("moves a user without undoing a rename by someone else, and sees the form close if it's saved unchanged", async () => {
    await button('Edit…').click();
    await harness.direct.storage.database.write('users').where({ email: 'tom@example.com' }).update({ name: 'Tommy' });
    await dialog().getByLabel('Account', { exact: true }).selectOption(harness.tenants.account.name);
    await inDialog('Save').click();
    await text('User Tommy was changed.');
    await button('Edit…').click();
    await inDialog('Save').click();
    await dialog().waitFor({ state: 'detached' });
  });
});
