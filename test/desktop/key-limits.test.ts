import { expect } from 'chai';
import { describeBrowser, openPage, type PageHarness } from '../support/browser.ts';
import { signInAs } from '../support/console-harness.ts';
import { startCoreHere } from '../support/core.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';

let harness: PageHarness;

const button = (name: string) => harness.page.getByRole('button', { name, exact: true });
const dialog = (name: string) => harness.page.getByRole(/Revoke/.test(name) ? 'alertdialog' : 'dialog', { name });

describeBrowser("the console, for a key's limits", () => {
  beforeEach(async () => {
    harness = await openPage();
  });
  afterEach(() => harness.close());

  /** Places a call with another core on the database, which writes the key's use when it closes. */
  async function placeAndClose(keyValue: string): Promise<number> {
    const other = await startCoreHere(harness.database);
    const { status } = await placeCall(other.url, harness.tenants.campaign.id, keyValue);
    await other.close();
    return status;
  }

  it('limits a key in its details, warns before it locks out the client that used the key last, and marks the key in the list', async () => {
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    await placeAndClose(keyValue);
    await signInAs(harness, 'account');
    await harness.page.getByRole('row', { name: 'Practice software' }).click();
    await harness.page.getByText('from 127.0.0.1').waitFor();
    await button('Limit…').click();
    const form = dialog('Limit API key');
    await form.getByLabel('Addresses').fill('192.0.2.0/24\n10.0.0.7/8');
    await form.getByLabel('Calls per day').fill('0');
    await form.getByText('The key was last used from 127.0.0.1, which isn’t in this list.').waitFor();
    await button('Save').click();
    await form.getByText('10.0.0.7/8: The address has bits set beyond its prefix length.').waitFor();
    await form.getByText('Enter a whole number from 1 to 10,000,000').waitFor();
    await form.getByLabel('Addresses').fill('192.0.2.0/24');
    await form.getByLabel('Calls per day').fill('500');
    await button('Save').click();
    await form.waitFor({ state: 'detached' });
    await harness.page.getByRole('row', { name: 'Practice software' }).getByText('Limited').waitFor();
    await harness.page.getByText('500 left until').waitFor();
    expect(await placeAndClose(keyValue)).to.equal(401);
  });

  it('replaces a key with one that has the same limits', async () => {
    const { id } = await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    const version = { limits_version: 'v1', addresses: '["192.0.2.0/24"]', calls_per_day: 7, time_zone: 'Asia/Tokyo' };
    await harness.direct.storage.database.write('api_keys').where({ id }).update(version);
    await signInAs(harness, 'account');
    await harness.page.getByRole('row', { name: 'Practice software' }).click();
    await button('Replace…').click();
    await dialog('Replace API key').getByLabel('Copy the old key’s limits: only from 192.0.2.0/24, 7 calls per day').waitFor();
    await dialog('Replace API key').getByText('The old key’s time zone.').waitFor();
    await button('Create Key').click();
    await button("I've Saved It").click();
    await button("I've Saved It").waitFor({ state: 'detached' });
    const keys = await harness.direct.storage.database.read('api_keys').select('addresses', 'calls_per_day', 'time_zone');
    const same = { addresses: '["192.0.2.0/24"]', calls_per_day: 7, time_zone: 'Asia/Tokyo' };
    expect(keys).to.deep.equal([same, same]);
  });

  it('asks why a key is being revoked, and shows what a leaked key did in the last 24 hours', async () => {
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    await placeAndClose(keyValue);
    await signInAs(harness, 'account');
    await button('Revoke Practice software').click();
    const asking = dialog('Revoke API Key?');
    await asking.getByLabel('Reason').selectOption({ label: 'Another reason' });
    await asking.getByLabel('Why?').waitFor();
    await asking.getByLabel('Reason').selectOption({ label: 'It leaked' });
    await asking.getByText('1 call placed.').waitFor();
    await asking.getByText('127.0.0.1').waitFor();
    await asking.getByText('The key has no replacement yet.').waitFor();
    await asking.getByText('Someone else may have placed it.').waitFor();
    await asking.getByRole('button', { name: 'Revoke', exact: true }).click();
    await asking.waitFor({ state: 'detached' });
    const events = harness.direct.storage.database.read('audit_events').where({ action: 'api-key.revoked' });
    expect(await events.pluck('detail')).to.deep.equal(['leaked']);
  });

  it('links to the replacement of a leaked key', async () => {
    await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
    const { id } = await createKeyOn(harness, harness.tenants.users.account, 'Practice software', { on: '2026-10-02T08:00:00.000Z' });
    await signInAs(harness, 'account');
    await button('Revoke Practice software').last().click();
    const asking = dialog('Revoke API Key?');
    await asking.getByLabel('Reason').selectOption({ label: 'It leaked' });
    const replacement = asking.getByRole('link', { name: 'Practice software' });
    expect(await replacement.getAttribute('href')).to.include(id);
  });
});
