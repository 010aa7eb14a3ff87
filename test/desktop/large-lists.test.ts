import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { timeCursors } from '../../core/domain/paging.ts';
import { browserForEach, describeBrowser, violationsOn } from '../support/browser.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';

const count = 700;

describeBrowser('the console with more campaigns, users and calls than fit on a page', () => {
  const browser = browserForEach({ isShared: true });
  const { button, row, dialog, panel } = browser;
  let oldest: string;

  before(async () => {
    const { partner, account, campaign, users } = browser.harness.tenants;
    const numbers = (last: number) => `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${last}) SELECT i FROM n)`;
    const { write } = browser.harness.direct.storage.database;
    await write.raw(`INSERT INTO campaigns (id, name, account_id, created_at)
      SELECT 'c' || i, printf('Reminder %04d', i), '${account.id}', 1 FROM ${numbers(count)}`);
    await write.raw(`INSERT INTO users (id, email, name, user_type, partner_id, password_hash, created_at)
      SELECT 'u' || i, printf('user%04d@example.com', i), printf('Üser %04d', i), 'partner', '${partner.id}', '', i FROM ${numbers(count)}`);
    await write.raw(`INSERT INTO accounts (id, name, partner_id, created_at)
      SELECT 'a' || i, printf('Praxis %04d', i), '${partner.id}', 1 FROM ${numbers(count)}`);
    await write.raw(`INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, partner_id, created_at)
      SELECT 'k' || i, 'd' || i, printf('Key %04d', i), 'u1', '${partner.id}', '${partner.id}', ${Date.UTC(2026, 8)} + i FROM ${numbers(count)}`);
    ({ keyValue: oldest } = await createKeyOn(browser.harness, users.partner, 'The oldest', { on: '2020-01-01T00:00:00.000Z' }));
    await write.raw(`INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, placed_at)
      SELECT printf('%09d', i), '${campaign.id}', '${account.id}', 'r' || i, 'k', 'completed', '+493012345678', ${Date.now()} FROM ${numbers(6_000)}`);
  });
  const open = (hash: string) => browser.open(`${browser.harness.core.url}/${hash}`, 'partner');

  it('lists only the newest 500 keys, says how to list the others, and finds an older one by its value', async () => {
    await open('#/api-keys');
    await browser.page.getByText(/^Newest 500 of 70\d keys/).waitFor();
    await browser.page.getByText('callkey-admin key list --all').waitFor();
    await button('Which key is this?').click();
    await browser.page.getByLabel('Key value').fill(` ${oldest.replaceAll('_', '\\_\u200B')}\n`);
    await button('Find key').click();
    await panel().getByRole('heading', { name: 'The oldest' }).waitFor();
    await button(/Revoke…/).click();
    await dialog('Revoke API Key?').waitFor();
    await button('Cancel').click();
    await browser.page.getByLabel('Search by name').fill('The oldest');
    await browser.page.getByText('No matching API keys').waitFor();
  });

  it('searches for users on the server, and loads more users on request', async () => {
    await open('#/users');
    await browser.page.getByText('500 users so far').waitFor();
    await browser.page.getByLabel('Search by name or email').fill('user 0699');
    await row('Üser 0699').waitFor();
    await browser.page.getByText('1 user', { exact: true }).waitFor();
    await browser.page.getByLabel('Search by name or email').fill('');
    await button('Show more users').click();
    await browser.page.getByText('705 users', { exact: true }).waitFor();
  });

  describe('an export of users that waits for a page', () => {
    let waiting: PromiseWithResolvers<void>;
    beforeEach(async () => {
      waiting = Promise.withResolvers();
      await browser.page.route(
        ({ pathname, searchParams }) => pathname === '/console/users' && searchParams.has('cursor'),
        async (route) => {
          await waiting.promise;
          await route.continue();
        },
        { times: 1 },
      );
      await open('#/users');
      await button('Export CSV').click();
      await browser.page.getByText('500 rows loaded so far…').waitFor();
    });

    it('continues if a search matches no one, or the list is loaded in full', async () => {
      await browser.page.getByLabel('Search by name or email').fill('no one');
      await browser.page.getByText('0 users', { exact: true }).waitFor();
      await browser.page.getByLabel('Search by name or email').fill('');
      await button('Show more users').click();
      await browser.page.getByText('705 users', { exact: true }).waitFor();
      waiting.resolve();
      await browser.page.getByText('Exported 705 users.').waitFor();
    });

    it('is announced as cancelled if the user leaves its screen', async () => {
      await browser.page.getByRole('link', { name: 'Calls', exact: true }).click();
      await browser.page.getByRole('heading', { name: 'Calls', exact: true }).waitFor();
      waiting.resolve();
      await browser.page.getByText('The export was cancelled. Nothing was saved.').waitFor();
    });
  });

  it('shows how many keys a deletion revokes, and offers to cancel their calls', async () => {
    await open('#/users');
    await browser.page.getByLabel('Search by name or email').fill('user 0001');
    // Until the search is done, the row is where another will be.
    await browser.page.getByText('1 user', { exact: true }).waitFor();
    await button('Delete Üser 0001').click();
    await browser.page.getByText('700 API keys will stop working').waitFor();
    await browser.page.getByText('The table lists the newest 500.').waitFor();
    await browser.page.getByLabel('Also cancel calls not yet dialed').waitFor();
  });

  it('finds an account for a new user by searching', async () => {
    await open('#/users');
    await button('Create user').click();
    await browser.page.getByLabel('Account', { exact: true }).click();
    await browser.page.getByRole('combobox', { name: 'Find an account' }).fill('praxis 0699');
    await browser.page.getByRole('option', { name: 'Praxis 0699' }).click();
    await browser.page.getByRole('button', { name: 'Account', exact: true }).getByText('Praxis 0699').waitFor();
  });

  it('searches for a campaign on the server, shows its calls, and opens it again from its address', async () => {
    await open('#/calls');
    await button('Choose a campaign…').click();
    await browser.page.getByRole('combobox', { name: 'Find a campaign' }).fill('reminder 0699');
    expect(await violationsOn(browser.page)).to.deep.equal([]);
    await browser.page.getByRole('option', { name: 'Reminder 0699' }).click();
    await browser.page.getByText('No calls yet').waitFor();
    await browser.page.reload();
    await button('Reminder 0699').waitFor();
    await browser.page.getByText('No calls yet').waitFor();
  });

  it('lists the outcomes by campaign in pages, and searches all campaigns', async () => {
    const { keyValue } = await createKeyOn(browser.harness, browser.harness.tenants.users.partner, 'Caller');
    await placeCall(browser.harness.core.url, browser.harness.tenants.campaign.id, keyValue);
    await open('#/calls?by=campaigns');
    await browser.page.getByText('500 campaigns so far').waitFor();
    await browser.page.getByLabel('Search by campaign or account').fill('reminder 0699');
    await row('Reminder 0699').waitFor();
    await browser.page.getByText('1 campaign', { exact: true }).waitFor();
    await browser.page.getByLabel('Search by campaign or account').fill('appointment');
    await browser.page.getByText('Counts only matching campaigns').waitFor();
    await browser.page.getByLabel('Search by campaign or account').fill('');
    await button('Show more campaigns').click();
    await row('Recalls').waitFor();
  });

  it('says how far back it has searched for calls, and continues the search on request', async () => {
    const { id } = browser.harness.tenants.campaign;
    let asked = 0;
    const nextCursor = timeCursors('calls').write({ at: instant(Date.now()), id: '000001000' });
    // Makes the first response say that the search ran out of time.
    await browser.page.route('**/calls?search=*', async (route) => {
      asked += 1;
      const response = await route.fetch();
      const url = new URL(route.request().url());
      if (url.searchParams.has('cursor')) return route.fulfill({ response });
      return route.fulfill({
        response,
        json: { calls: [], nextCursor, searchedBackTo: '2026-11-12T08:00:00.000Z', total: 0, totalIsMore: true },
      });
    });
    await open(`#/calls/${id}`);
    await browser.page.getByPlaceholder('Contact, phone number, or request ID').fill('r777');
    await browser.page.getByText('No matching calls so far').waitFor();
    expect(await violationsOn(browser.page)).to.deep.equal([]);
    await button('Search older calls').click();
    await browser.page.getByText('1 call, newest first').waitFor();
    expect(asked).to.be.at.least(2);
  });
});
