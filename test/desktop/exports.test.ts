import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { instant } from '../../core/domain/instant.ts';
import { describeBrowser, sharedBrowser } from '../support/chromium.ts';
import { sharedDesktop, signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { freshDirectory } from '../support/databases.ts';
import { describeDesktop } from '../support/electron.ts';
import { type FaultyProxy, faultyProxy } from '../support/faulty-proxy.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { placeCall } from '../support/tenants.ts';

type Exporter = {
  page: Page;
  /** Returns the file that an action saves. */
  saveFile(save: () => Promise<void>): Promise<string>;
  hasSaved(): boolean;
  close(): Promise<void>;
};

/** Returns a function that opens the console in Electron. It ignores the URL, which only a browser needs. */
function inElectron(): (url: string) => Promise<Exporter> {
  const { open, leave } = sharedDesktop();
  return async () => {
    const desktop = await open();
    const path = join(freshDirectory(), 'saved.csv');
    await desktop.app.evaluate(({ dialog }, filePath) => {
      dialog.showSaveDialog = async () => ({ canceled: false, filePath });
    }, path);
    const saveFile: Exporter['saveFile'] = async (save) => {
      await save();
      return readFileSync(path, 'utf8');
    };
    const hasSaved = () => existsSync(path) || existsSync(`${path}.part`);
    return { page: desktop.page, saveFile, hasSaved, close: () => leave(desktop) };
  };
}

function inChromium(): (url: string) => Promise<Exporter> {
  return async (url) => {
    const context = await (await sharedBrowser()).newContext();
    const page = await context.newPage();
    await page.goto(url);
    let downloads = 0;
    page.on('download', () => downloads++);
    const saveFile: Exporter['saveFile'] = async (save) => {
      const [download] = await Promise.all([page.waitForEvent('download'), save()]);
      return readFileSync(await download.path(), 'utf8');
    };
    return { page, saveFile, hasSaved: () => downloads > 0, close: () => context.close() };
  };
}

for (const [where, describeHome, openHome] of [
  ['in a browser', describeBrowser, inChromium],
  ['in Electron', describeDesktop, inElectron],
] as const) {
  describeHome(`an export ${where}`, () => {
    const open = openHome();
    let harness: CoreHarness;
    let network: FaultyProxy;
    let exporter: Exporter;
    beforeEach(async () => {
      harness = await openCore();
      network = await faultyProxy(harness.core.url);
      exporter = await open(network.url);
    });
    afterEach(async () => {
      await exporter.close();
      await network.close();
      await harness.close();
    });

    const button = (name: string) => exporter.page.getByRole('button', { name, exact: true });
    const enter = async (screen: string) => {
      const { page } = exporter;
      await signInAs({ ...harness, page, core: { ...harness.core, url: network.url } }, 'partner');
      await page.getByRole('link', { name: screen, exact: true }).click();
    };
    const exportUntil = async (text: string) => {
      await button('Export CSV').click();
      await exporter.page.getByText(text).waitFor();
    };

    it('contains every call in all campaigns on the day chosen in the chart, not only the loaded ones', async () => {
      const { tenants, direct, core } = harness;
      const { keyValue } = await createKeyOn(harness, tenants.users.partner, 'Nightly sync');
      for (let index = 0; index < 30; index++)
        for (const { id } of [tenants.campaign, tenants.siblingCampaign]) await placeCall(core.url, id, keyValue);
      await placeCall(core.url, tenants.campaign.id, keyValue, { requestId: 'long-ago', contact: { phone: '+493020001234' } });
      const longAgo = instant(Date.now() - 3 * 86_400_000);
      const idOfThen = `${longAgo.toString(16).padStart(12, '0').replace(/^.{8}/, '$&-')}-7000-8000-000000000000`;
      await direct.storage.database.write('calls').where({ request_id: 'long-ago' }).update({ placed_at: longAgo, contact_id: idOfThen });
      const { page } = exporter;
      await enter('Calls');
      await page.getByText('50 of 61 calls, newest first').waitFor();
      await page.locator('.chart g').last().click();
      await page.getByText('50 of 60 calls, newest first').waitFor();
      const lines = (await exporter.saveFile(() => exportUntil('Exported 60 calls.'))).split('\r\n');
      expect(lines.length).to.equal(63);
      expect(lines.filter((line) => line.startsWith('"Recalls"')).length).to.equal(30);
      expect(lines.at(-2)).to.equal('# complete, 60 rows');
    });

    it('that was cut off within a cell ends with a line that says so', async () => {
      await enter('Activity');
      const body = '"When","Who"\r\n"2026-11-21","Ada"\r\n"2026-11-20","Gra';
      network.faults.push({ path: '/activity.csv', fault: { status: 200, headers: { 'callkey-contract': '1' }, body } });
      const file = await exporter.saveFile(() => exportUntil('The file is incomplete: it ends after 1 event, and its last line says so.'));
      expect(file).to.equal(`${body}"\r\n# INCOMPLETE, 1 rows: The connection to the server was lost. Export again.\r\n`);
    });

    it('that is refused or cancelled saves nothing', async () => {
      await enter('Activity');
      network.faults.push({ path: '/activity.csv', fault: { status: 502 } });
      await exportUntil('Nothing was saved. Can’t reach the server.');
      const { promise, resolve } = Promise.withResolvers<void>();
      network.faults.push({ path: '/activity.csv', fault: promise });
      await exportUntil('0 rows exported so far…');
      await button('Cancel export').click();
      await exporter.page.getByText('The export was cancelled. Nothing was saved.').waitFor();
      resolve();
      expect(exporter.hasSaved()).to.equal(false);
    });
  });
}
