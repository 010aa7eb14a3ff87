import { expect } from 'chai';
import { describeDesktop, launchConsole, type RunningConsole } from '../support/electron.ts';

describeDesktop('the window', () => {
  let running: RunningConsole;
  before(async () => {
    running = await launchConsole();
  });
  after(() => running.close());

  it('shows the page of the app', async () => {
    expect(running.page.url()).to.equal('app://callkey/index.html');
    expect(await running.page.evaluate(() => document.title)).to.equal('Callkey');
  });
});
