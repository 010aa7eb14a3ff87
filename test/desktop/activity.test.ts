import { expect } from 'chai';
import { changeApiKey, revokeApiKey } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { describeBrowser, pageForEach, settle } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';

describeBrowser("the console's lines about what happened", () => {
  const harness = pageForEach();

  const { link, button, heading, row, panel } = finders(() => harness.page);

  it('lead from the activity to a key that ended with its user, and both say who deleted the user', async () => {
    const { page, tenants } = harness;
    await createKeyOn(harness, tenants.users.teammate, 'Practice software');
    await harness.enter('partner');
    await deleteUser(harness.direct.ports, operator, tenants.users.teammate, false);
    await link('Activity').click();
    // The search of the screen before it has the same name.
    await heading('Activity').waitFor();
    await row(/Deleted the user/).waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('practice');
    // Until the search is done, the rows are where others will be.
    await row(/Deleted the user/).waitFor({ state: 'detached' });
    await row(/Revoked the API key/).click();
    await panel().getByText('Its user Tom Teammate was deleted').waitFor();
    await panel()
      .getByText(/^[0-9a-f-]{36}$/)
      .first()
      .waitFor();
    await panel().getByRole('link', { name: 'Show the API key' }).click();
    await panel().getByText('Revoked', { exact: true }).first().waitFor();
    await panel().getByText('Its user Tom Teammate was deleted').first().waitFor();
    await panel().getByRole('link', { name: 'The operator revoked this API key' }).click();
    await panel().locator('dt:text-is("Event ID")').waitFor();
    await panel().getByText('Its user Tom Teammate was deleted').waitFor();
    await page.goBack();
    await panel().getByText('Revoked', { exact: true }).first().waitFor();
    await page.goBack();
    await page.reload();
    await panel().getByText('Its user Tom Teammate was deleted').waitFor();
    await button('All activity about this').click();
    await row(/Created the API key/).waitFor();
    await page.goto(`${harness.core.url}/#/users/${tenants.users.teammate.id}`);
    await panel().getByText('The operator deleted the user Tom Teammate').waitFor();
    await panel().getByText('This user was deleted.').waitFor();
  });

  it('say that it was the viewer who revoked a key and why, and name others', async () => {
    const { page, tenants, direct, core } = harness;
    const { account } = tenants.users;
    const { id } = await createKeyOn(harness, account, 'Practice software');
    const caller = { viewer: { ...account, tenancy: null }, actor: { who: account, address: '192.0.2.17' } };
    await revokeApiKey(direct.ports, caller, id, false, { reason: 'leaked' });
    const by = panel().locator('dt', { hasText: /^By$/ }).locator('xpath=following-sibling::dd[1]');
    for (const [user, name] of [
      ['account', 'You'],
      ['partner', account.name],
    ] as const) {
      await harness.enter(user);
      await page.goto(`${core.url}/#/api-keys/${id}`);
      await by.getByText(name, { exact: true }).waitFor();
      await panel().locator('dt:text-is("Reason") + dd').getByText('Leaked', { exact: true }).waitFor();
      await button('Sign out').click();
    }
  });

  it('show what a change replaced, and lead to the calls of a key', async () => {
    const { page, tenants, direct } = harness;
    const { id } = await createKeyOn(harness, tenants.users.teammate, 'Practice software');
    for (const callsPerDay of [5, 7]) await changeApiKey(direct.ports, operator, id, { callsPerDay });
    await harness.enter('partner', 'activity');
    for (const [before, after] of [
      ['At most 5 calls per day', 'At most 7 calls per day'],
      ['None', 'At most 5 calls per day'],
    ] as const) {
      await row(new RegExp(after, 'i')).click();
      await panel().locator('dt:text-is("Before") + dd').getByText(before, { exact: true }).waitFor();
      await panel().locator('dt:text-is("After") + dd').getByText(after, { exact: true }).waitFor();
    }
    await panel().getByRole('link', { name: 'Show its calls' }).click();
    await heading('Calls').waitFor();
    await page.waitForURL((url) => url.hash.includes(id));
  });

  it('lead nowhere that can’t be shown', async () => {
    const { page, tenants, core, direct } = harness;
    await harness.enter('staff');
    await page.goto(`${core.url}/#/api-keys?tenancy=account/${tenants.account.id}`);
    await page.getByRole('button', { name: /^Blue Clinic/ }).waitFor();
    await deleteUser(direct.ports, operator, tenants.users.teammate, false);
    await link('Activity').click();
    const lookedUp = page.waitForResponse(/\/deletion/);
    await row(/Switched to/)
      .first()
      .click();
    await (await lookedUp).finished();
    await settle(page);
    expect(await panel().locator('dt:text-is("Who") + dd').getByRole('link').count()).to.equal(0);
    await row(/Deleted the user/).click();
    await panel().getByRole('button', { name: 'All activity about this' }).waitFor();
    expect(await panel().getByRole('link', { name: 'Show the user' }).count()).to.equal(0);
  });

  it('name the user who acted with a link, and an exported list without an ID', async () => {
    const { page } = harness;
    await harness.enter('partner', 'users');
    await Promise.all([page.waitForEvent('download'), button('Export CSV').click()]);
    await link('Activity').click();
    await row(/Exported/)
      .first()
      .click();
    await panel().locator('dt:text-is("Who") + dd').getByRole('link').waitFor();
    expect(await panel().getByText('List ID').count()).to.equal(0);
  });
});
