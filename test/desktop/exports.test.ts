import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { instant } from '../../core/domain/instant.ts';
import { describeBrowser, pageForEach } from '../support/browser.ts';
import { mountDisk } from '../support/commands.ts';
import { finders, sharedDesktop, signInAs } from '../support/console-harness.ts';
import { openCore } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { chooseButton, describeDesktop, listQuestions, type RunningConsole } from '../support/electron.ts';
import { faultyProxy } from '../support/proxies.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce, skip } from '../support/suites.ts';
import { placeCall } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

/** A file that ends before its last line. */
const cutOff = {
  status: 200,
  headers: { 'callkey-contract': '1' },
  body: '"When","Who"\r\n"2026-11-21","Ada"\r\n"2026-11-20","Gra',
};

describeBrowser('an export in a browser', () => {
  const harness = pageForEach();
  const { button, row } = finders(() => harness.page);

  async function exportUntil(text: string): Promise<void> {
    await button('Export CSV').click();
    await harness.page.getByText(text).waitFor();
  }
  async function saveFile(text: string): Promise<string> {
    const [download] = await Promise.all([harness.page.waitForEvent('download'), exportUntil(text)]);
    return readFileSync(await download.path(), 'utf8');
  }

  it('contains every call in all campaigns on the day chosen in the chart, not only the loaded ones', async () => {
    const { page, tenants, direct, core } = harness;
    const { keyValue } = await createKeyOn(harness, tenants.users.partner, 'Nightly sync');
    for (let index = 0; index < 30; index++)
      for (const { id } of [tenants.campaign, tenants.siblingCampaign]) await placeCall(core.url, id, keyValue);
    await placeCall(core.url, tenants.campaign.id, keyValue, { requestId: 'long-ago', contact: { phone: '+493020001234' } });
    const longAgo = instant(Date.now() - 3 * 86_400_000);
    const idOfThen = `${longAgo.toString(16).padStart(12, '0').replace(/^.{8}/, '$&-')}-7000-8000-000000000000`;
    await direct.storage.database.write('calls').where({ request_id: 'long-ago' }).update({ placed_at: longAgo, contact_id: idOfThen });
    await harness.enter('partner', 'calls');
    await page.getByText('50 of 61 calls, newest first').waitFor();
    await page.locator('.chart g').last().click();
    await page.getByText('50 of 60 calls, newest first').waitFor();
    const lines = (await saveFile('Exported 60 calls.')).split('\r\n');
    expect(lines.length).to.equal(63);
    expect(lines.filter((line) => line.startsWith('"Recalls"')).length).to.equal(30);
    expect(lines.at(-2)).to.equal('# complete, 60 rows');
  });

  it('contains the matches of what was just typed, even if the list doesn’t show them yet', async () => {
    const { page } = harness;
    await page.clock.install();
    await harness.enter('partner', 'activity');
    await row('Signed in').first().waitFor();
    // No timer fires anymore.
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.getByLabel('Search').fill('nothing like this');
    await saveFile('Exported 0 events.');
  });

  it('that is cut off, refused or cancelled saves nothing', async () => {
    const { page } = harness;
    let downloads = 0;
    page.on('download', () => downloads++);
    await harness.enter('partner', 'activity');
    for (const [answer, problem] of [
      [cutOff, 'The connection to the server was lost. Export again.'],
      [{ status: 502 }, 'Can’t reach the server.'],
    ] as const) {
      await page.route('**/activity.csv*', (route) => route.fulfill(answer), { times: 1 });
      await exportUntil(`Nothing was saved. ${problem}`);
    }
    await page.route('**/activity.csv*', () => undefined);
    await exportUntil('0 rows exported so far…');
    await button('Cancel export').click();
    await page.getByText('The export was cancelled. Nothing was saved.').waitFor();
    expect(downloads).to.equal(0);
  });
});

describeDesktop('a file saved by the app', () => {
  const harness = openOnce(() => openCore());
  const network = openOnce(() => faultyProxy(harness.core.url));
  before(() => createKeyOn(harness, harness.tenants.users.account, 'Practice software'));
  const { open, leave } = sharedDesktop();
  let desktop: RunningConsole;
  beforeEach(async () => {
    desktop = await open();
    await signInAs({ ...harness, core: { ...harness.core, url: network.url }, page: desktop.page }, 'partner');
  });
  afterEach(() => leave(desktop));

  /** Replaces files without asking. @param paths one for each dialog; the last one also for further dialogs */
  const chooseFiles = async (...paths: string[]) => {
    await chooseButton(desktop, 'Replace');
    await desktop.app.evaluate(({ dialog }, left) => {
      dialog.showSaveDialog = async (...args: unknown[]) => {
        Object.assign(globalThis, { saveDialog: args.at(-1) });
        return { canceled: false, filePath: (left.length > 1 ? left.shift() : left[0]) ?? '' };
      };
    }, paths);
  };
  const dialogOptions = () => desktop.app.evaluate(() => Reflect.get(globalThis, 'saveDialog') as Electron.SaveDialogOptions);
  const exportFrom = async (screen: string) => {
    await desktop.page.getByRole('link', { name: screen, exact: true }).click();
    // The screen before it has the same button.
    await desktop.page.getByRole('heading', { name: screen, exact: true }).waitFor();
    await desktop.page.getByRole('button', { name: 'Export CSV', exact: true }).click();
  };

  it('replaces an older file only after asking, whatever the dialog of the desktop does', async function () {
    if (process.platform !== 'linux') skip(this, 'the dialog of this system always asks');
    const folder = freshDirectory();
    const [older, newer] = [join(folder, 'older.csv'), join(folder, 'newer.csv')];
    writeFileSync(older, 'older');
    await chooseFiles(older, newer, older);
    await chooseButton(desktop, 'Choose another name');
    await exportFrom('API keys');
    await eventually(async () => expect(readdirSync(folder).toSorted()).to.deep.equal(['newer.csv', 'older.csv']));
    expect(readFileSync(older, 'utf8')).to.equal('older');
    expect((await listQuestions(desktop)).map(({ message }) => message)).to.deep.equal(['Replace older.csv?']);
    await chooseButton(desktop, 'Replace');
    await exportFrom('API keys');
    await eventually(async () => expect(readFileSync(older, 'utf8')).to.equal(readFileSync(newer, 'utf8')));
    expect((await listQuestions(desktop)).map(({ message }) => message)).to.deep.equal(['Replace older.csv?']);
  });

  it("keeps the older file's permissions, and the user's own file with the extension .part", async () => {
    const folder = freshDirectory();
    const path = join(folder, 'saved.csv');
    for (const name of ['saved.csv', 'saved.csv.part']) writeFileSync(join(folder, name), 'older');
    await chooseFiles(path);
    for (const mode of [0o600, 0o666]) {
      chmodSync(path, mode);
      await exportFrom('API keys');
      await eventually(async () => expect(readFileSync(path, 'utf8')).to.contain('Practice software'));
      expect(statSync(path).mode & 0o777).to.equal(mode);
      writeFileSync(path, 'older');
    }
    expect(readFileSync(`${path}.part`, 'utf8')).to.equal('older');
    expect(readdirSync(folder).toSorted()).to.deep.equal(['saved.csv', 'saved.csv.part']);
  });

  it("isn't there after an export that is cut off or cancelled", async () => {
    const folder = freshDirectory();
    await chooseFiles(join(folder, 'saved.csv'));
    network.faults.push({ path: '/activity.csv', fault: cutOff });
    await exportFrom('Activity');
    await desktop.page.getByText('Nothing was saved. The connection to the server was lost. Export again.').waitFor();
    const { promise, resolve } = Promise.withResolvers<void>();
    network.faults.push({ path: '/activity.csv', fault: promise });
    await exportFrom('Activity');
    await desktop.page.getByRole('button', { name: 'Cancel export' }).click();
    await desktop.page.getByText('The export was cancelled. Nothing was saved.').waitFor();
    resolve();
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it('gets a name with the server and the day', async () => {
    await chooseFiles(join(freshDirectory(), 'saved.csv'));
    for (const [screen, name, message] of [
      ['API keys', 'api-keys', 'Exported 1 API key.'],
      ['Activity', 'activity', /^Exported \d+ events\.$/],
    ] as const) {
      await exportFrom(screen);
      await desktop.page.getByText(message).waitFor();
      const { defaultPath = '' } = await dialogOptions();
      const host = new URL(network.url).host.replace(':', '-');
      expect(basename(defaultPath)).to.equal(`${name}-${host}-${new Date().toLocaleDateString('sv')}.csv`);
    }
  });

  for (const screen of ['API keys', 'Activity']) {
    it(`keeps the older file if the disk is full, and says so (${screen})`, async function () {
      const disk = mountDisk(this, 'size=8k');
      await using cleanup = new AsyncDisposableStack();
      cleanup.defer(() => void execFileSync('umount', [disk]));
      const path = join(disk, 'saved.csv');
      writeFileSync(path, 'x'.repeat(8_192));
      await chooseFiles(path);
      await exportFrom(screen);
      await desktop.page.getByText('Nothing was saved. The disk is full. An older file with this name is unchanged.').waitFor();
      expect(readFileSync(path, 'utf8')).to.equal('x'.repeat(8_192));
      expect(readdirSync(disk)).to.deep.equal(['saved.csv']);
    });
  }
});
