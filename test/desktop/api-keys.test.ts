import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { Locator } from 'playwright-core';
import { describeBrowser, openPage, type PageHarness } from '../support/browser.ts';
import { signInAs, untilFocused } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

let harness: PageHarness;

const button = (name: string | RegExp) => harness.page.getByRole('button', { name, exact: typeof name === 'string' });
const dialog = (name: string) => harness.page.getByRole(/Revoke|Save|gone/.test(name) ? 'alertdialog' : 'dialog', { name });
const row = (name: string) => harness.page.getByRole('row', { name });
/** Omits the first cell, which selects the row. */
const cells = async (of: Locator) => (await of.getByRole('gridcell').allInnerTexts()).slice(1).map((text) => text.trim());

const day = (instant: DateTime) => instant.setZone('Europe/Berlin').setLocale('en').toFormat('d LLL yyyy');
const today = () => day(DateTime.now());

describeBrowser('the console, for API keys', () => {
  beforeEach(async () => {
    harness = await openPage();
  });
  afterEach(() => harness.close());

  it('creates a key whose value works and is shown once', async () => {
    await signInAs(harness, 'account');
    await harness.page.getByText('No API keys yet').waitFor();
    await button('Create API key').click();
    await harness.page.getByLabel('Name', { exact: true }).fill('Practice software');
    await harness.page.getByRole('radio', { name: 'No expiration', exact: true }).check();
    await button('Create Key').click();
    await dialog('Save your key').waitFor();
    const keyValue = await harness.page.getByLabel('Key value').inputValue();
    await button("I've Saved It").click();
    await row('Practice software').waitFor();
    await eventually(async () => expect(await cells(row('Practice software'))).to.deep.equal([today(), 'Never', 'No expiration', '']));
    expect((await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue)).status).to.equal(202);
    expect(await harness.page.content()).not.to.include(keyValue);
  });

  it('lists the expiration, last use and the Expired badge with its date, and the exact time with its zone on hover and on focus', async () => {
    const { account } = harness.tenants.users;
    await createKeyOn(harness, account, 'Fallen due', { on: '2025-03-03T08:00:00.000Z', expiration: { kind: 'years', years: 1 } });
    await createKeyOn(harness, account, 'In use', { lastUsed: new Date(Date.now() - 74 * 3_600_000).toISOString() });
    await signInAs(harness, 'account');
    await eventually(async () => expect((await cells(row('Fallen due')))[2]?.replace(/\s+/g, ' ')).to.equal('3 Mar 2026 Expired'));
    await eventually(async () => expect((await cells(row('In use')))[1]).to.equal(day(DateTime.now().minus({ hours: 74 }))));
    await harness.page.getByText('3 Mar 2026').hover();
    await harness.page
      .getByRole('tooltip', { name: /3 Mar 2026, 23:59:59 Europe\/Berlin/ })
      .or(harness.page.getByText('3 Mar 2026, 23:59:59 Europe/Berlin'))
      .first()
      .waitFor();
    await harness.page.mouse.move(0, 0);
    await row('Fallen due').locator('time').first().focus();
    await harness.page.getByText('3 Mar 2025, 09:00:00 Europe/Berlin').waitFor();
    await harness.page.keyboard.press('Escape');
    await harness.page.getByText('3 Mar 2025, 09:00:00 Europe/Berlin').waitFor({ state: 'hidden' });
  });

  describe('when a key is revoked', () => {
    it("focuses Cancel first, which revokes nothing and returns the focus, and the revoked key's next request is refused", async () => {
      const { keyValue } = await createKeyOn(harness, harness.tenants.users.account, 'Practice software');
      await createKeyOn(harness, harness.tenants.users.account, 'Website form', { on: '2026-09-01T00:00:00.000Z' });
      await signInAs(harness, 'account');
      await button('Revoke Practice software').click();
      await dialog('Revoke API Key?').getByText('Never', { exact: true }).first().waitFor();
      await eventually(async () => expect(await harness.page.evaluate('document.activeElement.textContent')).to.equal('Cancel'));
      await harness.page.keyboard.press('Enter');
      await dialog('Revoke API Key?').waitFor({ state: 'detached' });
      await untilFocused(button('Revoke Practice software'));
      await harness.page.keyboard.press('Enter');
      await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
      await row('Practice software').waitFor({ state: 'detached' });
      expect((await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue)).status).to.equal(401);
      await untilFocused(row('Website form'));
    });

    it('names the creator of another user’s key, and cancels its calls on request', async () => {
      const { keyValue } = await createKeyOn(harness, harness.tenants.users.teammate, 'Practice software');
      for (let index = 0; index < 3; index++) await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue);
      await signInAs(harness, 'partner');
      await button('Revoke Practice software').click();
      await dialog('Revoke API Key?').getByText('created by Tom Teammate').waitFor();
      await harness.page.getByLabel('Also cancel 3 calls not yet dialed').check();
      await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
      await row('Practice software').waitFor({ state: 'detached' });
      const states = await harness.direct.storage.database.read('calls').select('state');
      expect(states).to.deep.equal([{ state: 'cancelled' }, { state: 'cancelled' }, { state: 'cancelled' }]);
    });
  });

  it('labels keys with their owner, but not for a user who sees only their own keys', async () => {
    for (const name of ['account', 'teammate', 'tied'] as const) await createKeyOn(harness, harness.tenants.users[name], `Key of ${name}`);
    for (const [user, owners] of [
      ['account', []],
      // A partner user who is limited to one account.
      ['tied', ['Ada Account', 'Tom Teammate', 'You']],
      ['partner', ['Ada Account', 'Tia Tied', 'Tom Teammate']],
    ] as const) {
      await signInAs(harness, user);
      await harness.page.getByRole('grid').waitFor();
      expect(await harness.page.getByRole('columnheader', { name: 'Owner' }).count()).to.equal(owners.length === 0 ? 0 : 1);
      expect((await harness.page.locator('td[data-label="Owner"]').allInnerTexts()).toSorted()).to.deep.equal(owners);
      await button('Sign out').click();
    }
  });
});

describeBrowser('the form for a new API key', () => {
  before(async () => {
    harness = await openPage();
    await signInAs(harness, 'account');
  });
  after(() => harness.close());
  beforeEach(async () => {
    await button('Create API key').click();
    await dialog('Create API key').waitFor();
  });
  afterEach(() => dialog('Create API key').waitFor({ state: 'detached' }));

  const name = () => harness.page.getByLabel('Name', { exact: true });
  const discard = async () => {
    await harness.page.keyboard.press('Escape');
    await button('Discard').click();
  };
  const fillIn = async () => {
    await name().fill('Not to be');
    await harness.page.getByRole('radio', { name: '1 Year', exact: true }).check();
  };

  it('offers no expiration, 1 to 5 years and a custom date, and closes on Escape without asking', async () => {
    const choices = await harness.page.getByRole('group', { name: 'Expiration' }).locator('.choice > span:first-of-type').allInnerTexts();
    expect(choices).to.deep.equal(['No expiration', '1 Year', '2 Years', '3 Years', '4 Years', '5 Years', 'Custom']);
    await harness.page.keyboard.press('Escape');
  });

  it('moves the focus into a dialog before the next key press', async () => {
    await harness.page.keyboard.press('Escape');
    await dialog('Create API key').waitFor({ state: 'detached' });
    const focused = await button('Create API key').evaluate(async (element) => {
      element.dispatchEvent(new MouseEvent('click', { bubbles: true }));
      // A zero timeout fires before the next frame. By then, the focus must have moved, because the user could press a key that early.
      await new Promise((resolve) => setTimeout(resolve));
      return document.activeElement?.closest('.field')?.querySelector('label')?.textContent;
    });
    expect(focused).to.equal('Name');
    await harness.page.keyboard.press('Escape');
  });

  it('creates nothing on Cancel', async () => {
    await fillIn();
    await button('Cancel').click();
    await dialog('Create API key').waitFor({ state: 'detached' });
    expect((await harness.direct.storage.database.read('api_keys')).length).to.equal(0);
    await button('Create API key').click();
    await eventually(async () => expect(await name().inputValue()).to.equal(''));
    await harness.page.keyboard.press('Escape');
  });

  for (const [way, dismiss] of [
    ['Escape', () => harness.page.keyboard.press('Escape')],
    ['Escape, twice', () => harness.page.keyboard.press('Escape').then(() => harness.page.keyboard.press('Escape'))],
    ['a click outside', () => harness.page.mouse.click(5, 5)],
  ] as const) {
    it(`asks before ${way} discards a form that is filled in`, async () => {
      await fillIn();
      await name().focus();
      await dismiss();
      await harness.page.getByText('Discard your input?').waitFor();
      await untilFocused(button('Go back'));
      await button('Go back').click();
      await untilFocused(name());
      expect(await name().inputValue()).to.equal('Not to be');
      await dismiss();
      await button('Discard').click();
    });
  }

  it('leaves Enter and Escape to an input method that composes text', async () => {
    /** Presses a key as a browser does for an input method. In Safari, only the code of the last one says so. */
    const compose = (key: string, how: object) =>
      harness.page.evaluate(
        ([pressed, init]) => document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: pressed, bubbles: true, ...init })),
        [key, how] as const,
      );
    for (const how of [{ isComposing: true }, { keyCode: 229 }]) await compose('Escape', how);
    await dialog('Create API key').waitFor();
    await button('Cancel').click();
    await button('Go to…').click();
    await harness.page.getByRole('option', { name: /Calls/ }).waitFor();
    for (const how of [{ isComposing: true }, { keyCode: 229 }]) for (const key of ['ArrowDown', 'Enter']) await compose(key, how);
    await harness.page.getByRole('option', { selected: true, name: /API keys/ }).waitFor();
    await compose('Enter', {});
    await harness.page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('asks for a name and an expiration, and focuses the first missing field', async () => {
    await button('Create Key').click();
    await harness.page.getByText('Enter a name for the key.').waitFor();
    await harness.page.getByText('Choose an expiration.').waitFor();
    await untilFocused(name());
    await harness.page.keyboard.press('Escape');
  });

  it('limits a name to 200 characters, and counts an emoji as one', async () => {
    await name().fill('📞'.repeat(200));
    await harness.page.getByText('200 / 200').waitFor();
    await name().fill('📞'.repeat(201));
    await harness.page.getByText('201 / 200').waitFor();
    expect(await name().getAttribute('aria-invalid')).to.equal(null);
    await harness.page.getByRole('button', { name: 'Create Key' }).click();
    await harness.page.getByText('Choose an expiration.').waitFor();
    await harness.page.getByText('Must be at most 200 characters.').waitFor();
    await discard();
  });
});
