import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { describeBrowser, openPage, type PageHarness } from '../support/browser.ts';
import { signInAs, untilFocused } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { eventually } from '../support/until.ts';

let harness: PageHarness;

const button = (name: string | RegExp) => harness.page.getByRole('button', { name, exact: typeof name === 'string' });
const dialog = (name: string) => harness.page.getByRole(/Revoke|Save|gone/.test(name) ? 'alertdialog' : 'dialog', { name });
const row = (name: string) => harness.page.getByRole('row', { name });

describeBrowser('the console, with many API keys,', () => {
  beforeEach(async () => {
    harness = await openPage();
  });
  afterEach(() => harness.close());

  describe('in its list', () => {
    beforeEach(async () => {
      for (let index = 1; index <= 57; index++) {
        const on = `2026-0${1 + (index % 6)}-0${1 + (index % 9)}T08:00:00.000Z`;
        await createKeyOn(harness, harness.tenants.users.account, `Key ${index}`, { on });
      }
      await createKeyOn(harness, harness.tenants.users.account, 'Zahnärzte-Portal', {
        on: new Date(Date.now() - 360 * 86_400_000).toISOString(),
        expiration: { kind: 'years', years: 1 },
        lastUsed: new Date().toISOString(),
      });
      await signInAs(harness, 'account');
      await harness.page.getByRole('grid').waitFor();
    });
    const rows = () => harness.page.locator('tbody tr').count();

    it('shows pages of 10, 20 and 50', async () => {
      await eventually(async () =>
        expect(await harness.page.getByLabel('Rows').getByRole('option').allInnerTexts()).to.deep.equal(['10', '20', '50']),
      );
      for (const [size, pages] of [
        ['10', 6],
        ['20', 3],
        ['50', 2],
      ] as const) {
        await harness.page.getByLabel('Rows').selectOption(size);
        await harness.page.getByText(`Page 1 of ${pages}`).waitFor();
        expect(await rows()).to.equal(Number(size));
      }
      await button('Next page').click();
      await harness.page.getByText('51–58 of 58 keys').waitFor();
      expect(await rows()).to.equal(8);
    });
  });

  it('says that it lists only the newest 500, says how to list the others, and finds an older key by its value', async () => {
    const { direct, tenants } = harness;
    const oldest = await createKeyOn(harness, tenants.users.account, 'The oldest', { on: '2020-01-01T00:00:00.000Z' });
    const [model] = await direct.storage.database.read('api_keys').where({ id: oldest.id });
    for (let batch = 0; batch < 60; batch++) {
      const copies = Array.from({ length: 20 }, (_, index) => {
        const number = batch * 20 + index;
        return {
          ...model,
          id: direct.ports.randomness.id(),
          name: `Copy ${number}`,
          digest: Buffer.from(direct.ports.randomness.bytes(32)).toString('hex'),
          created_at: instant((model?.created_at ?? 0) + number + 1),
        };
      });
      await direct.storage.database.write('api_keys').insert(copies);
    }
    await signInAs(harness, 'account');
    await harness.page.getByText('Newest 500 of 1,201').waitFor();
    await harness.page.getByText('callkey-admin key list --all').waitFor();
    await button('Which key is this?').click();
    await harness.page.getByLabel('Key value').fill(` ${oldest.keyValue.replaceAll('_', '\\_\u200B')}\n`);
    await button('Find key').click();
    await harness.page.getByRole('complementary', { name: /The oldest/ }).waitFor();
    await button(/Revoke…/).click();
    await dialog('Revoke API Key?').waitFor();
    await button('Cancel').click();
    await harness.page.getByLabel('Search by name').fill('The oldest');
    await harness.page.getByText('No matching API keys').waitFor();
  });

  it('finds the key for a pasted value, scrolls to its row and opens it, also when the value is entered again', async () => {
    for (let index = 0; index < 30; index++) await createKeyOn(harness, harness.tenants.users.account, `Key ${index}`);
    const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Found in a log', { on: '2025-01-01T00:00:00.000Z' });
    await signInAs(harness, 'account');
    await harness.page.getByRole('grid').waitFor();
    await button('Which key is this?').click();
    await harness.page.getByLabel('Key value').fill(keyValue.slice(0, -1));
    await button('Find key').click();
    await harness.page.getByText('This isn’t a key value').waitFor();
    await harness.page.getByLabel('Key value').fill(keyValue);
    await button('Find key').click();
    await harness.page.locator('tr.highlighted', { hasText: 'Found in a log' }).waitFor();
    await harness.page.getByText('Page 2 of 2').waitFor();
    await harness.page.getByRole('complementary', { name: /Found in a log/ }).waitFor();
    // The details of another key are open then, so its row alone stands out.
    await harness.page.getByRole('row', { name: /Key 0/ }).click();
    await harness.page.locator('tr.highlighted').waitFor({ state: 'detached' });
    await harness.page.getByLabel('Search by name').fill('something else');
    await button('Which key is this?').click();
    await harness.page.getByLabel('Key value').fill(keyValue);
    await button('Find key').click();
    await untilFocused(row('Found in a log'));
  });
});
