import { expect } from 'chai';
import type { Locator } from 'playwright-core';
import { browserForAll, describeBrowser } from '../support/browser.ts';
import { fillInKey, tryAgain } from '../support/console-harness.ts';
import { outage } from '../support/proxies.ts';
import { createKeyOn, placeCallIn } from '../support/sample-data.ts';
import { eventually } from '../support/until.ts';

const longName = 'Donaudampfschifffahrtsgesellschaft'.repeat(6).slice(0, 200);

describeBrowser('the screens in a browser', () => {
  const browser = browserForAll(async (harness) => {
    const { tenants, direct } = harness;
    const { write } = direct.storage.database;
    for (let index = 0; index < 30; index++) {
      const on = `2026-03-${String(1 + (index % 28)).padStart(2, '0')}T08:00:00.000Z`;
      await createKeyOn(harness, tenants.users.account, `Key ${index}`, { on });
    }
    await write('campaigns').where({ id: tenants.siblingCampaign.id }).update({ name: longName });
    await write('users').where({ id: tenants.users.teammate.id }).update({ name: longName });
    const soon = new Date(Date.now() - 360 * 86_400_000).toISOString();
    await createKeyOn(harness, tenants.users.teammate, longName, { on: soon, expiration: { kind: 'years', years: 1 } });
    const { keyValue } = await createKeyOn(harness, tenants.users.account, 'Reminder service');
    const call = { requestId: 'order-1', contact: { phone: '+493012345678', name: 'Ada' } };
    await placeCallIn(harness, tenants.campaign.id, keyValue, call, { state: 'completed' });
    const { keyValue: another } = await createKeyOn(harness, tenants.users.partner, 'Another service');
    await placeCallIn(harness, tenants.siblingCampaign.id, another, {
      requestId: 'order-2',
      contact: { phone: '+493012345679', name: 'Bob' },
    });
  });
  const { page, button, resize } = browser;
  beforeEach(() => resize(1280));

  const grid = () => page().getByRole('grid');
  const panel = () => page().getByRole('complementary');
  const goTo = async (screen: string) => {
    await browser.goTo(screen);
    await grid().waitFor();
  };
  /** Returns the positions of all elements in the list. */
  const places = () =>
    page()
      .locator('h1, search, thead, tbody tr')
      .evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)));
  /** Whether nothing covers the element's edges. */
  const isUncovered = (element: Locator) =>
    element.evaluate((each) => {
      const { left, right, top, bottom } = each.getBoundingClientRect();
      const x = (left + right) / 2;
      return [top + 3, bottom - 3].every((y) => each.contains(document.elementFromPoint(x, y)));
    });

  for (const screen of ['API keys', 'Calls']) {
    it(`show ${screen} unchanged if a refresh fails`, async () => {
      await goTo(screen);
      const before = await places();
      await goTo('Users');
      browser.network.faults.push(...outage);
      await goTo(screen);
      await page().getByText('Showing the last data loaded.').first().waitFor();
      expect(await places()).to.deep.equal(before);
      browser.network.faults.length = 0;
      await tryAgain(page());
      await page().getByText('Showing the last data loaded.').waitFor({ state: 'detached' });
    });
  }

  it("show no count for a list that couldn't be loaded", async () => {
    await goTo('Directory');
    browser.network.faults.push(...outage);
    await page().getByRole('combobox', { name: 'Show', exact: true }).selectOption('Campaigns');
    await page().getByRole('heading', { name: 'Can’t reach the server' }).waitFor();
    expect(await page().locator('main').innerText()).not.to.match(/0 campaigns|last data loaded/);
    browser.network.faults.length = 0;
    await tryAgain(page());
    await page().getByText('2 campaigns').waitFor();
  });

  it("don't move any row when details open or a row is selected", async () => {
    for (const width of [1280, 1600]) {
      await resize(width);
      await goTo('API keys');
      const before = await places();
      await page().getByRole('row', { name: 'Key 27' }).click();
      await panel().waitFor();
      expect(await places(), `details at ${width}`).to.deep.equal(before);
      await page().getByLabel('Select Key 27').check();
      expect(await places(), `selection at ${width}`).to.deep.equal(before);
      await button('Clear').click();
      await button('Close details').click();
    }
  });

  it('keep the focused row visible, from the first to the last and back', async () => {
    for (const width of [1280, 480]) {
      await resize(width);
      await goTo('API keys');
      const rows = page().locator('tbody tr');
      await rows.first().focus();
      const focused = page().locator('tbody tr:focus');
      for (const key of [...Array.from({ length: 19 }, () => 'j'), ...Array.from({ length: 19 }, () => 'k')]) {
        await page().keyboard.press(key);
        expect(await isUncovered(focused), `${key} at ${width}`).to.equal(true);
      }
    }
  });

  it("don't get wider because of one long name", async () => {
    await goTo('Calls');
    for (const campaign of [longName, 'Appointment reminders']) {
      await page().getByLabel('Campaign', { exact: true }).selectOption(campaign);
      await page().getByLabel('Days', { exact: true }).waitFor();
      expect((await page().getByLabel('Campaign', { exact: true }).boundingBox())?.y).to.be.lessThan(60);
    }
    const { x: exportX = 0, y: exportY = 0, width: exportWidth = 0 } = (await button('Export CSV').boundingBox()) ?? {};
    expect({ isInside: exportX + exportWidth <= 1280, isAtTheTop: exportY < 60 }).to.deep.equal({ isInside: true, isAtTheTop: true });
    await goTo('API keys');
    const { y: rowY = 0 } = (await page().locator('tbody tr').first().boundingBox()) ?? {};
    expect(rowY, 'only one row of controls').to.be.lessThan(160);
    const { x = 0, width = 0 } = (await page().locator('search select').first().boundingBox()) ?? {};
    expect(x + width).to.be.lessThan(1280);
  });

  it("show every key's name, owner, creation, last use and expiration at every width, with or without open details", async () => {
    await goTo('API keys');
    for (const isOpen of [false, true]) {
      if (isOpen) await page().getByRole('row', { name: 'Key 27' }).click();
      for (const width of isOpen ? [1280, 1600] : [480, 700, 900, 1024, 1280, 1600]) {
        await resize(width);
        const cells = page().getByRole('row', { name: 'Key 26' }).locator('th, td');
        await eventually(async () => {
          const shown = (await cells.allInnerTexts()).join(' ');
          for (const text of ['Key 26', 'Ada Account', '27 Mar 2026', 'Never', 'No expiration'])
            expect(shown, `${width}${isOpen ? ' with details' : ''}`).to.include(text);
        });
      }
    }
    await button('Close details').click();
  });

  it('show the creator, email, creation, expiration and ID in the revoke dialog, whose buttons stay where they are when its preview arrives', async () => {
    await goTo('API keys');
    const [id = '']: string[] = await browser.harness.direct.storage.database.read('api_keys').where({ name: 'Key 26' }).pluck('id');
    const arrival = Promise.withResolvers<void>();
    browser.network.faults.push({ path: '/revocation', fault: arrival.promise }, { path: '?timeZone=', fault: arrival.promise });
    await page().getByRole('row', { name: 'Key 26' }).getByRole('button').click();
    const dialog = page().getByRole('alertdialog', { name: 'Revoke API Key?' });
    const revoke = dialog.getByRole('button', { name: 'Revoke', exact: true });
    await dialog.locator('[aria-busy="true"]').first().waitFor();
    const before = await revoke.boundingBox();
    arrival.resolve();
    await dialog.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
    await dialog.getByText('No calls are waiting to be dialed.').waitFor();
    expect(await revoke.boundingBox()).to.deep.equal(before);
    for (const text of ['Ada Account', 'ada@example.com', '27 Mar 2026', 'No expiration', id])
      await eventually(async () => expect(await dialog.innerText()).to.include(text));
    await button('Cancel').click();
  });

  it('announce opened details, whose Replace button is three tab stops from the row', async () => {
    await goTo('API keys');
    await page().getByRole('row', { name: 'Key 26' }).focus();
    await page().keyboard.press('Enter');
    await page().getByRole('status').getByText('Details for Key 26 opened').waitFor({ state: 'attached' });
    for (const _ of ['link', 'close', 'replace']) await page().keyboard.press('Tab');
    await button('Replace…').and(page().locator(':focus')).waitFor();
    await page().keyboard.press('Escape');
    await page().getByRole('status').getByText('Details closed').waitFor({ state: 'attached' });
  });

  it('move the focus to the search field when the user presses slash, unless they are typing', async () => {
    await goTo('API keys');
    await page().getByRole('heading', { name: 'API keys', exact: true }).focus();
    for (const key of ['/', '/']) await page().keyboard.press(key);
    const search = page().getByLabel('Search by name');
    await eventually(async () =>
      expect([await search.evaluate((each) => each === document.activeElement), await search.inputValue()]).to.deep.equal([true, '/']),
    );
    await search.fill('');
  });

  it('show the full name of a call’s key', async () => {
    await goTo('Calls');
    await page().getByLabel('Campaign', { exact: true }).selectOption('Appointment reminders');
    const name = page().getByRole('grid', { name: 'Calls' }).getByText('Reminder service');
    await name.waitFor();
    expect(await name.evaluate((each) => each.scrollWidth - each.clientWidth)).to.equal(0);
  });

  it('move the focus at once when the focused element goes, because the user may type in the next frame', async () => {
    const focused = () => page().evaluate<string>('document.activeElement.closest("[id]")?.id ?? ""');
    await goTo('API keys');
    await grid().getByText('Reminder service').click();
    await page().evaluate('globalThis.nextFrame = requestAnimationFrame; globalThis.requestAnimationFrame = () => 0');
    await button('Close details').press('Enter');
    expect(await focused()).to.match(/^row-/);
    await goTo('Calls');
    await page().getByLabel('Campaign', { exact: true }).selectOption('Appointment reminders');
    expect(await focused()).to.equal('campaign');
    await page().evaluate('globalThis.requestAnimationFrame = nextFrame');
  });

  it('show a name in full that is cut outside of a list', async () => {
    await goTo('API keys');
    await page().keyboard.press('Control+k');
    await page().getByRole('dialog').getByRole('combobox').fill('Donau');
    await page().getByRole('dialog').locator('.name').first().hover();
    await page().getByRole('tooltip').getByText(longName).waitFor();
    await page().keyboard.press('Escape');
    await page().keyboard.press('Escape');
  });

  it('count in the chart only the calls that the list shows, and don’t move what’s below it', async () => {
    await goTo('Calls');
    await page().getByLabel('Campaign', { exact: true }).selectOption('Appointment reminders');
    const chart = (calls: string) => page().getByRole('img', { name: `${calls} placed in the last 30 days, by day and outcome` });
    await chart('1 call').waitFor();
    const top = async () => (await page().getByLabel('State').boundingBox())?.y;
    const before = await top();
    await page().getByLabel('State').selectOption('Failed');
    await chart('0 calls').waitFor();
    expect(await page().locator('.legend li').count()).to.equal(0);
    expect(await top()).to.equal(before);
    await page().getByLabel('State').selectOption('Any outcome');
    await page().getByLabel('Days', { exact: true }).selectOption('Custom…');
    await page().getByLabel('From day').fill('2026-01-01');
    await page().getByLabel('To day').fill('2026-01-31');
    await page().getByRole('img', { name: '0 calls placed on 1 Jan 2026 – 31 Jan 2026, by day and outcome' }).waitFor();
    await page().getByLabel('Days', { exact: true }).selectOption('Any day');
  });

  it('cut no text of a row in a narrow window, where no pointer can ask for the rest', async () => {
    await resize(390);
    for (const screen of ['API keys', 'Calls', 'Users', 'Activity']) {
      await goTo(screen);
      const clips = page().locator('.stacks .clip');
      await clips.first().waitFor();
      const cut = await clips.evaluateAll((all) =>
        all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ textContent }) => textContent),
      );
      expect(cut, screen).to.deep.equal([]);
    }
  });

  it('name every key in the dialog for revoking several keys, with space between the lines and the text, even in a narrow window', async () => {
    await goTo('API keys');
    for (const name of ['Key 27', 'Key 26']) await page().getByLabel(`Select ${name}`).check();
    await button('Revoke 2 keys…').click();
    const cell = page().getByRole('alertdialog').locator('tbody th').first();
    const gaps = await cell.evaluate((each) => {
      const [box, text] = [each.getBoundingClientRect(), each.firstElementChild?.getBoundingClientRect()];
      return text ? [text.top - box.top, box.bottom - text.bottom] : [];
    });
    expect(Math.min(...gaps)).to.be.at.least(3);
    await resize(480);
    for (const name of ['Key 27', 'Key 26']) {
      const key = page().getByRole('alertdialog').locator('th', { hasText: name });
      expect(await key.evaluate((each) => each.clientWidth >= each.scrollWidth && each.clientWidth > 0)).to.equal(true);
    }
    await button('Cancel').click();
    await button('Clear').click();
  });

  it('show the outcome of the call whose details are open in another color than its row', async () => {
    await goTo('Calls');
    const call = page().getByRole('row', { name: 'Ada' });
    await call.click();
    await panel().waitFor();
    const color = (element: Locator) => element.evaluate((each) => getComputedStyle(each).backgroundColor);
    expect(await color(call.locator('.badge'))).not.to.equal(await color(call));
    await button('Close details').click();
  });

  it('deselect rows that a filter hides', async () => {
    await goTo('API keys');
    for (const name of ['Key 27', 'Key 26']) await page().getByLabel(`Select ${name}`).check();
    await page().getByLabel('Search by name').fill('Key 27');
    await button('Revoke 1 key…').waitFor();
    await page().getByLabel('Search by name').fill('');
    await page().getByText('1 key selected').waitFor();
    await button('Clear').click();
  });

  it('never show an announcement over the buttons of a dialog', async () => {
    await resize(480);
    await fillInKey(page(), 'Saved');
    await button('Create Key').click();
    const dialog = page().getByRole('alertdialog', { name: 'Save your key' });
    await dialog.getByRole('button', { name: 'Copy command' }).click();
    const ends = await dialog.locator('select, pre, button').evaluateAll((all) => all.map((each) => each.getBoundingClientRect().right));
    const { x = 0, width = 0 } = (await dialog.boundingBox()) ?? {};
    expect(Math.max(...ends)).to.be.at.most(x + width);
    await dialog.getByRole('status').getByText('Copied the command.').waitFor({ state: 'attached' });
    for (const each of await dialog.getByRole('button').all()) {
      await each.scrollIntoViewIfNeeded();
      await eventually(async () => expect(await isUncovered(each), await each.innerText()).to.equal(true));
    }
    await button("I've Saved It").click();
  });
});
