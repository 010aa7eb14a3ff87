import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { DateTime } from 'luxon';
import type { Locator } from 'playwright-core';
import { makeKeyValue } from '#contract/key-value.ts';
import { describeBrowser, openPage, openWithKeys, pageForEach } from '../support/browser.ts';
import { finders, untilFocused } from '../support/console-harness.ts';
import { startCoreHere } from '../support/core.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

/** Omits the first cell, which selects the row. */
const cells = async (of: Locator) => (await of.getByRole('gridcell').allInnerTexts()).slice(1).map((text) => text.trim());

const day = (instant: DateTime) => instant.setZone('Europe/Berlin').setLocale('en').toFormat('d LLL yyyy');

describeBrowser('the console, for API keys', () => {
  const harness = pageForEach();
  const { button, row, link, heading, panel, dialog } = finders(() => harness.page);
  const createKey = (name: string, more?: Parameters<typeof createKeyOn>[3]) =>
    createKeyOn(harness, harness.tenants.users.account, name, more);
  const names = () => harness.page.getByRole('grid').locator('tbody th').allInnerTexts();

  it('lists the expiration, last use and the Expired badge with its date, the exact time with its zone on hover and on focus, and that an expired key no longer works', async () => {
    await createKey('Fallen due', { on: '2025-03-03T08:00:00.000Z', expiration: { kind: 'years', years: 1 } });
    const used = DateTime.now().minus({ hours: 74 });
    await createKey('In use', { lastUsed: used.toJSDate().toISOString() });
    await harness.enter('account');
    await eventually(async () => expect((await cells(row('Fallen due')))[2]?.replace(/\s+/g, ' ')).to.equal('3 Mar 2026 Expired'));
    await eventually(async () => expect((await cells(row('In use')))[1]).to.equal(day(used)));
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
    await row('Fallen due').focus();
    await harness.page.keyboard.press('Delete');
    await dialog('Revoke API Key?').getByText('has expired and no longer works').waitFor();
    await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
    await harness.page.getByText('Fallen due was revoked.', { exact: true }).waitFor();
  });

  it('shows whose keys an address asks for, even if that owner was deleted', async () => {
    await createKey('Practice software');
    await harness.enter('partner');
    await row('Practice software').waitFor();
    await harness.page.evaluate("location.hash = '#/api-keys?owner=gone@example.com'");
    await heading('No matching API keys').waitFor();
    const owner = harness.page.getByLabel('Owner');
    expect(await owner.locator('option:checked').innerText()).to.equal('gone@example.com (no keys)');
    await button('Show all keys').click();
    await row('Practice software').waitFor();
    expect(await owner.count()).to.equal(0);
  });

  it("focuses Cancel first, which revokes nothing and returns the focus, and the revoked key's next request is refused", async () => {
    const { keyValue } = await createKey('Practice software');
    await createKey('Website form', { on: '2026-09-01T00:00:00.000Z' });
    await harness.enter('account');
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
    await harness.enter('partner');
    await button('Revoke Practice software').click();
    await dialog('Revoke API Key?').getByText('created by Tom Teammate').waitFor();
    await harness.page.getByLabel('Also cancel 3 calls not yet dialed').check();
    await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke' }).click();
    await row('Practice software').waitFor({ state: 'detached' });
    const states = await harness.direct.storage.database.read('calls').select('state');
    expect(states).to.deep.equal([{ state: 'cancelled' }, { state: 'cancelled' }, { state: 'cancelled' }]);
  });

  it('labels keys with their owner, but not for a user who sees only their own keys', async () => {
    for (const name of ['account', 'tied'] as const) await createKeyOn(harness, harness.tenants.users[name], `Key of ${name}`);
    for (const [user, owners] of [
      ['account', []],
      // A partner user who is limited to one account.
      ['tied', ['Ada Account', 'You']],
    ] as const) {
      await harness.enter(user);
      await harness.page.getByRole('grid').waitFor();
      expect(await harness.page.getByRole('columnheader', { name: 'Owner' }).count()).to.equal(owners.length === 0 ? 0 : 1);
      expect((await harness.page.locator('td[data-label="Owner"]').allInnerTexts()).toSorted()).to.deep.equal(owners);
    }
  });

  it('warns about keys that expire within 30 days', async () => {
    const soon = new Date(Date.now() - 360 * 86_400_000).toISOString();
    await createKey('Zapier', { on: soon, expiration: { kind: 'years', years: 1 } });
    await openWithKeys(harness, ['Endless']);
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

  it("shows a key's access, calls by day and activity, its access in the dialogs that save and revoke it, and a warning about a name that another key has", async () => {
    await openWithKeys(harness, ['One']);
    await row('One').click();
    await panel().getByText('All campaigns in Blue Clinic').waitFor();
    await panel().getByText('No calls placed in the last 30 days').waitFor();
    await panel().getByText('You created this API key').waitFor();
    expect(await link('Show calls').getAttribute('href')).to.match(/#\/calls\?apiKey=[0-9a-f-]{36}$/);
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

  it('keeps a selection across pages, and names each selected key with its creator before revoking them', async () => {
    for (let index = 0; index < 12; index++) {
      const on = `2026-01-${10 + index}T08:00:00.000Z`;
      const { keyValue } = await createKey(`Key ${index}`, { on });
      if (index === 0) await placeCall(harness.core.url, harness.tenants.campaign.id, keyValue);
    }
    await harness.enter('partner');
    const pick = async (name: string) => {
      await row(name).focus();
      await harness.page.keyboard.press('Space');
    };
    const size = harness.page.getByLabel('Rows');
    await eventually(async () => expect(await size.getByRole('option').allInnerTexts()).to.deep.equal(['10', '20', '50']));
    await size.selectOption('10');
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
    await harness.page.getByLabel('Also cancel 1 call not yet dialed').check();
    await dialog('Revoke 2 API keys?').getByRole('button', { name: 'Revoke 2 keys' }).click();
    await harness.page.getByText('2 keys were revoked.').waitFor();
    await harness.page.getByText('10 keys', { exact: false }).first().waitFor();
    const left: string[] = await harness.direct.storage.database.read('api_keys').orderBy('created_at').pluck('name');
    expect(left).to.deep.equal(Array.from({ length: 10 }, (_, index) => `Key ${index + 1}`));
    expect(await harness.direct.storage.database.read('calls').pluck('state')).to.deep.equal(['cancelled']);
  });

  it('makes the user type the number of keys before revoking more than ten', async () => {
    for (let index = 0; index < 11; index++) await createKey(`Key ${index}`);
    await harness.enter('account');
    await harness.page.getByLabel('Select all on this page').check();
    await button('Revoke 11 keys…').click();
    const confirm = dialog('Revoke 11 API keys?').getByRole('button', { name: 'Revoke 11 keys' });
    await confirm.click({ force: true });
    await eventually(async () => expect(await confirm.getAttribute('aria-disabled')).to.equal('true'));
    await harness.page.getByLabel('To revoke 11 keys, type 11').fill('11');
    await confirm.click();
    await harness.page.getByText('No API keys yet').waitFor();
  });

  it('replaces a key with a new key of the same name, expiration, limits and time zone, and shows both keys', async () => {
    const { id } = await createKey('Zapier', { expiration: { kind: 'years', years: 2 } });
    const same = { addresses: '["192.0.2.0/24"]', calls_per_day: 7, time_zone: 'Asia/Tokyo' };
    await harness.direct.storage.database
      .write('api_keys')
      .where({ id })
      .update({ ...same, limits_version: 'v1' });
    await harness.enter('account');
    await row('Zapier').click();
    await button('Replace…').click();
    await harness.page.getByRole('radio', { name: '2 Years', checked: true }).waitFor();
    for (const text of ['The old key has access to all campaigns in Blue Clinic.', 'The old key’s time zone.'])
      await dialog('Replace API key').getByText(text).waitFor();
    const newAccess = await dialog('Replace API key')
      .getByText('Like you, the new key has access to all campaigns in Blue Clinic.')
      .boundingBox();
    expect(newAccess?.y).to.be.lessThan((await dialog('Replace API key').getByLabel('Name').boundingBox())?.y ?? 0);
    await dialog('Replace API key').getByLabel('Copy the old key’s limits: only from 192.0.2.0/24, 7 calls per day').waitFor();
    await button('Create Key').click();
    await button("I've Saved It").click();
    await panel().getByText('Keys with this name').waitFor();
    const keys = await harness.direct.storage.database.read('api_keys').select('addresses', 'calls_per_day', 'time_zone');
    expect(keys).to.deep.equal([same, same]);
    await eventually(async () => expect(await panel().locator('tbody tr').count()).to.equal(2));
    const covers = (cells: (HTMLElement | SVGElement)[]) =>
      cells.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length;
    expect(await panel().locator('td').evaluateAll(covers)).to.equal(0);
    await eventually(async () =>
      expect((await names()).map((name) => name.replace(/\n…\w{6}\nLimited$/, ', its ID and its mark'))).to.deep.equal([
        'Zapier, its ID and its mark',
        'Zapier, its ID and its mark',
      ]),
    );
  });

  /** Places a call with another core on the database, which writes the key's use when it closes. */
  async function placeAndClose(keyValue: string): Promise<number> {
    const other = await startCoreHere(harness.database);
    const { status } = await placeCall(other.url, harness.tenants.campaign.id, keyValue);
    await other.close();
    return status;
  }

  it('limits a key in its details, warns before it locks out the client that used the key last, and marks the key in the list', async () => {
    const { keyValue } = await createKey('Practice software');
    await placeAndClose(keyValue);
    await harness.enter('account');
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

  it('asks why a key is being revoked, shows what a leaked key did in the last 24 hours, and links to its calls and its replacement', async () => {
    const { page, direct } = harness;
    const { keyValue } = await createKey('Practice software');
    await placeAndClose(keyValue);
    await harness.enter('account');
    await button('Revoke Practice software').click();
    const asking = dialog('Revoke API Key?');
    await asking.getByLabel('Reason').selectOption('Another reason');
    await asking.getByLabel('Why?').waitFor();
    await asking.getByLabel('Reason').selectOption('It leaked');
    for (const text of ['1 call placed.', '127.0.0.1', 'The key has no replacement yet.', 'Someone else may have placed it.'])
      await asking.getByText(text).waitFor();
    await link('Show the key’s calls').click();
    await heading('Calls').waitFor();
    expect(await asking.count()).to.equal(0);

    const { id } = await createKey('Practice software', { on: '2026-10-02T08:00:00.000Z' });
    await page.goto('about:blank');
    await harness.enter('account');
    await button(/^Revoke Practice software …/)
      .last()
      .click();
    await asking.getByLabel('Reason').selectOption('It leaked');
    expect(await asking.getByRole('link', { name: 'Practice software' }).getAttribute('href')).to.include(id);
    await asking.getByRole('button', { name: 'Revoke', exact: true }).click();
    await asking.waitFor({ state: 'detached' });
    await page
      .getByText(/^Practice software ….{6} was revoked and no longer works\.$/)
      .first()
      .waitFor();
    expect(await direct.storage.database.read('audit_events').where({ action: 'api-key.revoked' }).pluck('detail')).to.deep.equal([
      'leaked',
    ]);
  });

  it('finds the key for a pasted value, of which the core gets only the hash, scrolls to its row and opens it, also when the value is entered again', async () => {
    for (let index = 0; index < 30; index++) await createKey(`Key ${index}`);
    const { keyValue } = await createKey('Found in a log', { on: '2025-01-01T00:00:00.000Z' });
    await harness.enter('account');
    await harness.page.getByRole('grid').waitFor();
    await button('Which key is this?').click();
    await harness.page.getByLabel('Key value').fill(keyValue.slice(0, -1));
    await button('Find key').click();
    await harness.page.getByText('This isn’t a key value').waitFor();
    await harness.page.getByLabel('Key value').fill(makeKeyValue(randomBytes));
    await button('Find key').click();
    await harness.page.getByText('None of the keys you can see').waitFor();
    expect(await harness.page.getByLabel('Key value').inputValue()).to.equal('');
    await harness.page.getByLabel('Key value').fill(`CALLKEY_API_KEY=${keyValue}`);
    const sent = harness.page.waitForRequest(/identify/);
    await button('Find key').click();
    expect((await sent).postData()).to.match(/^\{"sha256":"[0-9a-f]{64}"\}$/);
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

describeBrowser('the form for a new API key', () => {
  const harness = openOnce(() => openPage());
  const { button, dialog } = finders(() => harness.page);
  before(() => harness.enter('account'));
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

  it('asks before Escape, pressed once or twice, discards a form that is filled in', async () => {
    await fillIn();
    await name().focus();
    for (let times = 0; times < 2; times++) await harness.page.keyboard.press('Escape');
    await harness.page.getByText('Discard your input?').waitFor();
    await untilFocused(button('Go back'));
    await button('Go back').click();
    await untilFocused(name());
    expect(await name().inputValue()).to.equal('Not to be');
    await discard();
  });

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

  it('limits a name to 200 characters, and counts an emoji as one', async () => {
    await name().fill('📞'.repeat(200));
    await harness.page.getByText('200 / 200').waitFor();
    await name().fill('📞'.repeat(201));
    await harness.page.getByText('201 / 200').waitFor();
    expect(await name().getAttribute('aria-invalid')).to.equal(null);
    await button('Create Key').click();
    await harness.page.getByText('Choose an expiration.').waitFor();
    await harness.page.getByText('Must be at most 200 characters.').waitFor();
    await discard();
  });
});
