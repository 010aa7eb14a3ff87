import { expect } from 'chai';
import { DateTime } from 'luxon';
import { instant } from '../../core/domain/instant.ts';
import { describeBrowser, holdResponse, pageForEach } from '../support/browser.ts';
import { finders } from '../support/console-harness.ts';
import { createKeyOn, placeCallIn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually, until } from '../support/until.ts';

describeBrowser('the console, for calls and users', () => {
  const harness = pageForEach();
  let keyValue: string;
  beforeEach(async () => {
    ({ keyValue } = await createKeyOn(harness, harness.tenants.users.teammate, 'Practice software'));
  });

  const { link, button, row, panel } = finders(() => harness.page);
  const call = (name: string, requestId: string) => ({ requestId, contact: { phone: '+4930555001', name } });
  const place = (name: string) =>
    placeCallIn(harness, harness.tenants.campaign.id, keyValue, call(name, `order-${name.replaceAll(' ', '-')}`));
  /** Returns the texts of a row's cells in these columns. */
  const cells = async (name: string, ...heads: string[]) => {
    await row(name).waitFor();
    const texts = await Promise.all(heads.map((head) => row(name).locator(`td[data-label="${head}"]`).innerText()));
    return texts.map((text) => text.replace(/\s+/g, ' ').trim());
  };

  it('holds the list while new calls arrive, says how many, and then shows them', async () => {
    const { page } = harness;
    const placed = (count: number, name: string) => Promise.all(Array.from({ length: count }, (_, index) => place(`${name} ${index}`)));
    const first = () => page.locator('tbody th').first().innerText();
    await placed(3, 'Old');
    await harness.enter('tied', 'calls');
    await row('Old 2').waitFor();
    const [before, top] = [await first(), (await row('Old 0').boundingBox())?.y];
    await placed(6, 'New');
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await button('6 new calls').waitFor();
    expect([await first(), (await row('Old 0').boundingBox())?.y, await row('New').count()]).to.deep.equal([before, top, 0]);
    await button('6 new calls').click();
    await row('New 5').waitFor();
    expect(await page.locator('tbody tr').count()).to.equal(9);
    expect(await button('6 new calls').count()).to.equal(0);
  });

  it('shows the newest calls when the user returns to the screen, and covers no row with the button that shows newer ones', async () => {
    const { page } = harness;
    await place('Old');
    await harness.enter('tied', 'calls');
    await row('Old').waitFor();
    await link('Users').click();
    await page.getByRole('heading', { name: 'Users' }).waitFor();
    await place('New');
    await link('Calls').click();
    await row('New').waitFor();
    await page.getByText('2 calls, newest first').waitFor();
    await place('Newer');
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await button('1 new call').waitFor();
    await page.getByText('2 of 3 calls, newest first').waitFor();
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const [lowest, shows] = [await row('Old').boundingBox(), await button('1 new call').boundingBox()];
      expect(shows?.y, `at ${width}`).to.be.at.least((lowest?.y ?? 0) + (lowest?.height ?? 0));
    }
  });

  it('shows how the request IDs of a file’s calls end, also under the names of campaigns', async () => {
    const { tenants, page } = harness;
    const requestId = (line: number) => `file-cbea9e3984d07c6ab1f05e2c7d8a9b10-${line}`;
    for (const line of [1, 1234]) await placeCallIn(harness, tenants.campaign.id, keyValue, call(`Ada ${line}`, requestId(line)));
    await harness.enter('partner', 'calls');
    const clip = row('Ada 1234').locator('.clip-middle');
    for (const campaign of ['', tenants.campaign.id]) {
      await page.getByLabel('Campaign', { exact: true }).selectOption(campaign);
      await clip.getByText(requestId(1234).slice(0, -8)).waitFor();
      const [cut, room] = await clip.evaluate((each) => {
        const end = new Range();
        if (each.lastChild) end.selectNode(each.lastChild);
        const isCut = [...each.children].some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
        return [isCut, each.getBoundingClientRect().right - end.getBoundingClientRect().right];
      });
      expect(cut).to.equal(true);
      expect(room).to.be.at.least(0);
      expect(await clip.textContent()).to.equal(requestId(1234));
      const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((each) => each.getBoundingClientRect().height));
      expect(Math.max(...heights)).to.be.lessThan(45);
    }
    await clip.locator('.clip').hover();
    await page.getByRole('tooltip').getByText(requestId(1234)).waitFor();
  });

  it('shows the menu of a narrow window without an empty line', async () => {
    const { page } = harness;
    await place('Ada Lovelace');
    await page.setViewportSize({ width: 400, height: 800 });
    await harness.enter('tied', 'calls');
    await button('More').click();
    const menu = page.locator('.menu:popover-open');
    const [height = 0, buttonHeight = 0] = await menu.evaluate((each) => [
      each.clientHeight,
      each.querySelector('button')?.offsetHeight ?? 0,
    ]);
    expect(height - buttonHeight).to.be.within(0, 24);
  });

  it('shows no next attempt of a call that has just ended', async () => {
    const { page } = harness;
    const contactId = await place('Ada Lovelace');
    await harness.enter('tied', 'calls');
    await row('Ada Lovelace').click();
    await panel().getByText('Next attempt').waitFor();
    // The row is loaded again before the details.
    await page.route(new RegExp(`/${contactId}$`), () => undefined);
    const now = instant(Date.now());
    await harness.direct.storage.database
      .write('calls')
      .where({ contact_id: contactId })
      .update({ state: 'completed', ended_at: now, due_at: null });
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await panel().getByText('Ended').waitFor();
    expect(await panel().getByText('Next attempt').count()).to.equal(0);
  });

  it('tells keys with the same name apart in the list, in the details of a call and in the filter', async () => {
    const { tenants, page } = harness;
    const other = await createKeyOn(harness, tenants.users.partner, 'Practice software');
    await placeCallIn(harness, tenants.campaign.id, other.keyValue, call('Grace Hopper', 'order-2'));
    await place('Ada Lovelace');
    await harness.enter('partner', 'calls');
    const label = `Practice software …${other.id.slice(-6)}`;
    await eventually(async () => expect(await cells('Grace Hopper', 'Key')).to.deep.equal([label]));
    await eventually(async () => expect((await cells('Ada Lovelace', 'Key')).join()).to.match(/^Practice software ….{6}$/));
    await page.getByLabel('Key', { exact: true }).selectOption({ label });
    // Until the other call is gone, the row is where another will be.
    await row('Ada Lovelace').waitFor({ state: 'detached' });
    await row('Grace Hopper').click();
    await panel().getByRole('link', { name: label }).waitFor();
  });

  it('dims the rows of another filter until those of the new one have arrived', async () => {
    const { page } = harness;
    await place('Ada Lovelace');
    await harness.enter('tied', 'calls');
    await row('Ada Lovelace').waitFor();
    const held = await holdResponse(page, /calls\?.*state=failed/);
    await page.getByLabel('State').selectOption('Failed');
    const dimmed = page.locator('.list[aria-busy=true]');
    await dimmed.getByRole('row', { name: 'Ada Lovelace' }).waitFor();
    expect(Number(await dimmed.locator('tbody').evaluate((body) => getComputedStyle(body).opacity))).to.be.lessThan(0.6);
    await held.release();
    await page.getByText('No matching calls').waitFor();
    await dimmed.waitFor({ state: 'detached' });
  });

  it('shows the whole reason of an outcome in the list, and the owner of the key in the details', async () => {
    const { tenants, page } = harness;
    const detail = 'The carrier refused the call: the number was ported twice in the last 24 hours';
    const simulated = { state: 'no_answer', detail: 'Simulated: No one answered.', isSimulated: true } as const;
    await placeCallIn(harness, tenants.campaign.id, keyValue, call('Ada Lovelace', 'order-1'), {
      ...{ state: 'failed', detail, isSimulated: true },
    });
    await placeCallIn(harness, tenants.campaign.id, keyValue, call('Grace Hopper', 'order-2'), simulated);
    await harness.enter('tied', 'calls');
    for (const width of [390, 768, 1280, 1600]) {
      await page.setViewportSize({ width, height: 800 });
      const cut = await row('Ada Lovelace')
        .getByText(detail)
        .evaluate((each) => [each.scrollHeight - each.clientHeight, each.scrollWidth - each.clientWidth]);
      expect(cut, `at ${width}`).to.deep.equal([0, 0]);
      const [inRow, reason] = await Promise.all(
        [row('Ada Lovelace'), row('Ada Lovelace').getByText(detail)].map((each) => each.boundingBox()),
      );
      expect((inRow?.height ?? 0) - (reason?.height ?? 0), `at ${width}`).to.be.at.least(8);
    }
    expect(await cells('Ada Lovelace', 'Outcome')).to.deep.equal([`Failed Simulated ${detail}`]);
    expect(await cells('Grace Hopper', 'Outcome', 'Key')).to.deep.equal(['No answer Simulated: No one answered.', 'Practice software']);
    await row('Grace Hopper').click();
    await panel().getByText('Practice software Tom Teammate').waitFor();
  });

  it('shows a call’s time window and variables in its details, and counts it in the chart', async () => {
    const { tenants, core, page } = harness;
    const window = { notBefore: '2099-01-01T08:00:00.000Z', notAfter: '2099-01-02T08:00:00.000Z' };
    await placeCall(core.url, tenants.campaign.id, keyValue, {
      ...call('Ada Lovelace', 'order-1'),
      ...window,
      variables: { orderNumber: '4711' },
    });
    const trouble = { since: instant(Date.UTC(2026, 10, 21, 9)), reason: 'connection refused' };
    await harness.direct.ports.stores.dialing.noteTrouble('core-1', trouble, instant(Date.now()));
    // Without a provider, the details contain no time of the next attempt.
    await page.route('**/console/session', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), dialer: 'webhook' } });
    });
    await harness.enter('tied', 'calls');
    await page.getByText(/^The provider hasn’t accepted a call since .+: connection refused\.$/).waitFor();
    await row('Ada Lovelace').click();
    await panel().getByText('orderNumber').waitFor();
    const facts = async () => (await panel().locator('.facts').allInnerTexts()).join('\n').replace(/\s+/g, ' ');
    await eventually(async () =>
      expect(await facts()).to.match(/Not before 1 Jan 2099, .* Not after 2 Jan 2099, .* Next attempt 1 Jan 2099, .* orderNumber 4711/),
    );
    expect(await page.locator('.chart g').last().getAttribute('data-tip')).to.match(/: 1 calls\nQueued, dialing: 1$/);
    expect(await page.locator('.chart .scale').innerText()).to.match(/^1\s+0$/);
  });

  it('refreshes the list of calls automatically', async () => {
    const { page, tenants } = harness;
    await page.clock.install();
    await harness.enter('tied', 'calls');
    await page.getByText('No calls yet').waitFor();
    const state = (text: string) => row('Ada Lovelace').getByText(text);
    const refreshed = (text: string) =>
      until(async () => {
        await page.clock.runFor(1_000);
        return (await state(text).count()) > 0;
      });
    await placeCallIn(harness, tenants.campaign.id, keyValue, call('Ada Lovelace', 'order-1'), { state: 'dialing' });
    await refreshed('Dialing');
    await harness.direct.storage.database.write('calls').update({ state: 'completed', ended_at: instant(Date.now()) });
    await refreshed('Completed');
  });

  it('shows the outcomes of all campaigns together, and the calls of each', async () => {
    const { tenants, page, direct, core } = harness;
    const { keyValue: partnerKey } = await createKeyOn(harness, tenants.users.partner, 'Nightly sync');
    for (let index = 0; index < 3; index++) await placeCall(core.url, tenants.campaign.id, partnerKey);
    const yesterday = DateTime.now().setZone('Europe/Berlin').minus({ days: 1 }).set({ hour: 12 }).startOf('hour').toMillis();
    const counted = { campaign_id: tenants.siblingCampaign.id, quarter_at: instant(yesterday) };
    await direct.storage.database.write('call_counts').insert([
      { ...counted, state: 'completed', calls: 1 },
      { ...counted, state: 'completed by person', calls: 3 },
      { ...counted, state: 'completed by machine', calls: 2 },
      { ...counted, state: 'failed', calls: 2 },
    ]);
    await harness.enter('partner', 'calls');
    await button('By campaign').click();
    await eventually(async () => expect(await cells('Appointment reminders', 'Account', 'Calls')).to.deep.equal(['Blue Clinic', '3']));
    await eventually(async () => expect(await cells('Recalls', 'Calls', 'Completed', 'Failed, unknown')).to.deep.equal(['8', '6', '2']));
    await page.getByLabel('Days', { exact: true }).selectOption('Yesterday');
    await page.getByRole('listitem').filter({ hasText: 'Completed' }).getByText('6 · 75%').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'Completed' }).getByText('Person 3, machine 2').waitFor();
    await eventually(async () => expect(await cells('Appointment reminders', 'Calls')).to.deep.equal(['0']));
    await page.getByLabel('Days', { exact: true }).selectOption('Last 30 days');
    await row('Appointment reminders').click();
    await page.getByText('3 calls, newest first').waitFor();
    const campaign = page.getByLabel('Campaign', { exact: true });
    await eventually(async () => expect(await campaign.evaluate((select) => select === document.activeElement)).to.equal(true));
    await campaign.selectOption('All campaigns');
    await row('Recalls').waitFor();
  });

  it('lists the keys that a deletion revokes, with their last use, before deleting', async () => {
    const { page, tenants, core } = harness;
    for (let index = 0; index < 2; index++) await placeCall(core.url, tenants.campaign.id, keyValue);
    await harness.enter('partner', 'users');
    await button('Delete Tom Teammate').click();
    const dialog = page.getByRole('alertdialog', { name: 'Delete Tom Teammate?' });
    await dialog.getByText(/1 API key will stop working immediately. It was(n’t)? used in the last 7 days/).waitFor();
    await dialog.getByText('They aren’t currently signed in.').waitFor();
    await eventually(async () =>
      expect(await dialog.getByRole('row', { name: 'Practice software' }).getByRole('cell').last().innerText()).to.equal('2'),
    );
    await page.getByLabel('Also cancel 2 calls not yet dialed').check();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await row('Tom Teammate').waitFor({ state: 'detached' });
    expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(401);
    expect(await harness.direct.storage.database.read('calls').pluck('state')).to.deep.equal(['cancelled', 'cancelled']);
  });
});
