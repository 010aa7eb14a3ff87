import { expect } from 'chai';
import { describeBrowser, sharedBrowser, violationsOn } from '../support/browser.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { openOnce } from '../support/suites.ts';

describeBrowser('the reference page', () => {
  const core = openOnce(async () => startCoreHere(await freshDatabase('sqlite')));

  it('follows its content security policy, and fits a narrow screen', async () => {
    const page = await (await sharedBrowser()).newPage({ viewport: { width: 360, height: 640 } });
    const complaints: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    await page.goto(`${core.url}/reference`);
    await page.getByText('C#', { exact: true }).click();
    await page.getByText('static readonly HttpClient client').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).to.equal(360);
    expect(await violationsOn(page)).to.deep.equal([]);
    expect(complaints.filter((text) => !text.includes('favicon.ico') && !text.includes('404') && !text.includes('401'))).to.deep.equal([]);
    await page.close();
  });
});
