import { expect } from 'chai';
import { screensFor } from '../../desktop/screens.ts';
import { browserForEach, describeBrowser, openPage, violationsOn } from '../support/browser.ts';
import { clickUnderDialog, fillInKey, finders, signInAs, untilFocused } from '../support/console-harness.ts';
import { createKeyOn } from '../support/sample-data.ts';
import { openOnce } from '../support/suites.ts';
import { password } from '../support/tenants.ts';
import { eventually } from '../support/until.ts';

describeBrowser('the console in a browser', () => {
  const browser = browserForEach();
  const { button, heading, link, signInOnForm, open, clipboardText, createKey } = browser;

  it('asks only for the email address and password, and keeps the session and device in cookies that no script or other site can read', async () => {
    await browser.page.goto(browser.harness.core.url);
    await browser.page.getByLabel('Email').waitFor();
    await eventually(async () => expect(await browser.page.locator('form input').count()).to.equal(2));
    await browser.page.getByText('You’ll stay signed in on this browser').waitFor();
    await signInAs({ ...browser.harness, page: browser.page }, 'account');
    const cookies = await browser.context.cookies();
    expect(cookies.map(({ name }) => name.replace(/_\w{8}(?=\.|$)/, ''))).to.include.members(['callkey_session', 'callkey_device']);
    for (const cookie of cookies) expect(cookie).to.include({ httpOnly: true, sameSite: 'Strict', path: '/' });
    expect(await browser.page.evaluate('document.cookie')).to.equal('');
    await browser.page.reload();
    await heading('API keys').waitFor();
  });

  it('moves the focus to the heading of a screen and listens to keys as soon as the screen is visible, before any frame or timer has run', async () => {
    await browser.page.goto(browser.harness.core.url);
    await browser.page.getByLabel('Email').waitFor();
    // From here on, no frame or timer runs.
    await browser.page.clock.install();
    await browser.page.clock.pauseAt(Date.now() + 60_000);
    await signInAs({ ...browser.harness, page: browser.page }, 'account');
    await untilFocused(heading('API keys'));
    await browser.page.keyboard.press('?');
    await button('Close').click();
    await link('Calls').click();
    await untilFocused(heading('Calls'));
  });

  it('can be used with only the keyboard, from the sign-in form to a new key, which is then revoked', async () => {
    await browser.page.goto(browser.harness.core.url);
    await browser.page.getByLabel('Email').waitFor();
    await browser.page.keyboard.type(browser.harness.tenants.users.account.email);
    await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.type(password);
    await browser.page.keyboard.press('Enter');
    await heading('API keys').waitFor();
    const focused = () => browser.page.evaluate('document.activeElement.textContent.trim()');
    while ((await focused()) !== 'Create API key') await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('Enter');
    await browser.page.keyboard.type('By keyboard');
    await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('ArrowDown');
    while ((await focused()) !== 'Create Key') await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('Enter');
    await browser.page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    while ((await focused()) !== "I've Saved It") await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('Enter');
    await browser.page.getByText('By keyboard is ready to use.').waitFor();
    await untilFocused(browser.page.getByRole('row', { name: 'By keyboard' }));
    await browser.page.keyboard.press('Delete');
    // The button is enabled only once the core has reported the effects of revoking the key.
    await browser.page.getByRole('alertdialog').getByRole('button', { name: 'Revoke', disabled: false }).waitFor();
    while ((await focused()) !== 'Revoke') await browser.page.keyboard.press('Tab');
    await browser.page.keyboard.press('Enter');
    await browser.page.getByText('By keyboard was revoked and no longer works.').waitFor();
  });

  it('shows names with markup as plain text', async () => {
    const names = [
      '<img src=x onerror=alert(1)>',
      '</script><script>alert(1)</script>',
      '{{constructor.constructor("alert(1)")()}}',
      '鍵🔑 مفتاح',
    ];
    for (const name of names) await createKeyOn(browser.harness, browser.harness.tenants.users.account, name);
    browser.page.on('dialog', (dialog) => browser.complaints.push(`${dialog.type()}: ${dialog.message()}`));
    await open();
    for (const screen of ['API keys', 'Activity']) {
      await link(screen).click();
      for (const name of names) await browser.page.getByRole('row').filter({ hasText: name }).first().waitFor();
    }
    expect(await browser.page.locator('main img, body script').count()).to.equal(0);
  });

  it("copies an ID, and hides the announcement when a dialog opens, so that it doesn't cover the buttons", async () => {
    await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open();
    await browser.page.getByRole('row', { name: 'Practice software' }).first().click();
    const id = await browser.panel().locator('code').first().innerText();
    await button('Copy ID').click();
    await browser.page.getByText('Copied the ID.').waitFor();
    expect(await clipboardText()).to.equal(id);
    await browser.page.bringToFront();
    await button('Create API key').click();
    await browser.page.getByRole('dialog').waitFor();
    await browser.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    expect(await browser.page.getByText('Copied the ID.').count()).to.equal(0);
  });

  it("doesn't run a timer every second, whether it shows the sign-in form or a list", async () => {
    const { page } = browser;
    await page.clock.install();
    await page.addInitScript(() => {
      const counted = window as unknown as { runs: number };
      counted.runs = 0;
      for (const name of ['setTimeout', 'setInterval', 'requestAnimationFrame'] as const) {
        const original = Reflect.get(window, name) as (run: (...args: unknown[]) => void, ...rest: unknown[]) => number;
        Reflect.set(window, name, (run: (...args: unknown[]) => void, ...rest: unknown[]) =>
          original(
            (...args) => {
              counted.runs += 1;
              run(...args);
            },
            ...rest,
          ),
        );
      }
    });
    const runsInAMinute = async () => {
      // A request that's still open would seem to have timed out, and be repeated every few seconds.
      await page.waitForLoadState('networkidle');
      await page.evaluate('runs = 0');
      await page.clock.runFor(60_000);
      return Number(await page.evaluate('runs'));
    };
    await page.goto(browser.harness.core.url);
    await page.getByLabel('Email').waitFor();
    expect(await runsInAMinute()).to.be.below(10);
    await open();
    expect(await runsInAMinute()).to.be.below(50);
  });

  it('over HTTP from another machine, warns that others can read the traffic, and neither hashes nor copies keys', async () => {
    const address = browser.harness.core.url.replace('127.0.0.1', 'calls.callkey.test');
    await signInOnForm('account', address);
    await button('Which key is this?').click();
    const { keyValue } = await createKeyOn(browser.harness, browser.harness.tenants.users.account, 'Pasted in the clear');
    await browser.page.getByLabel('Key value').fill(keyValue);
    await button('Find key').click();
    await browser.page.getByText('Your browser allows this only over HTTPS.').waitFor();
    await button('Close').click();
    await createKey();
    await button('Copy').click();
    await browser.page.getByText('Your browser blocked copying.').waitFor();
    await button("I've Saved It").click();
    await button('Sign out').click();
    await browser.page.getByText('This connection isn’t encrypted').waitFor();
  });

  it('shows the reference for integrators, which follows its content security policy and fits a narrow screen', async () => {
    const { page, harness } = browser;
    await page.setViewportSize({ width: 360, height: 640 });
    await page.goto(`${harness.core.url}/reference`);
    await page.getByText('C#', { exact: true }).click();
    await page.getByText('static readonly HttpClient client').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).to.equal(360);
    expect(await violationsOn(page)).to.deep.equal([]);
  });
});

describeBrowser('the console in a browser, on one page,', () => {
  const harness = openOnce(() => openPage());
  const { button, row } = finders(() => harness.page);
  const field = (name: string) => harness.page.getByLabel(name, { exact: true });

  async function openForm(): Promise<void> {
    await harness.page.context().clearCookies();
    await harness.page.goto(harness.core.url);
    await field('Email').waitFor();
  }

  for (const [user, description] of [
    ['tied', 'Partner user · Blue Clinic, Northwind Voice'],
    ['staff', 'Service staff'],
  ] as const) {
    it(`shows the right screens to ${description}`, async () => {
      await harness.enter(user);
      const labels = screensFor(harness.tenants.users[user]).map(({ label }) => label);
      await eventually(async () => {
        const shown = await harness.page.getByRole('navigation').getByRole('link').allInnerTexts();
        expect(shown.map((text) => text.split('\n')[0])).to.deep.equal(labels);
      });
      await harness.page.getByText(description, { exact: true }).waitFor();
    });
  }

  it('says that the email address or password is incorrect, keeps what was typed, and focuses the password', async () => {
    const { email } = harness.tenants.users.account;
    await openForm();
    await field('Email').fill(email);
    await field('Password').fill('wrong');
    await button('Sign in').click();
    await harness.page.getByText('Incorrect email address or password.').waitFor();
    await untilFocused(field('Password'));
    await eventually(async () => expect(await field('Email').inputValue()).to.equal(email));
  });

  it("moves the focus to a refused field before the next frame, so that it can't take it from someone who has begun to type", async () => {
    await openForm();
    await harness.page.evaluate('window.requestAnimationFrame = () => 0');
    await button('Sign in').click();
    await harness.page.getByText('Enter your email address.').waitFor();
    await untilFocused(field('Email'));
  });

  it('keeps showing the value of a new key if Create Key was clicked twice', async () => {
    const { page } = harness;
    await harness.enter('account');
    // The longest name makes the largest dialog.
    await fillInKey(page, 'W'.repeat(200), 'No expiration');
    const { x, y, width, height } = (await button('Create Key').boundingBox()) ?? expect.fail('no button');
    await button('Create Key').click();
    const dialog = page.getByRole('alertdialog', { name: 'Save your key' });
    await dialog.waitFor();
    for (const part of [0.1, 0.5, 0.9]) await page.mouse.click(x + width * part, y + height * part);
    await dialog.waitFor();
    await button("I've Saved It").click();
  });

  it('asks the user to sign in again when the session has ended, and keeps what they typed', async () => {
    const { page } = harness;
    await harness.enter('account');
    await fillInKey(page, 'Typed with care', '2 Years');
    await harness.direct.storage.database.write('sessions').delete();
    await clickUnderDialog(page, 'Create Key');

    const ended = page.getByRole('alertdialog', { name: 'Your session has ended' });
    await ended.getByLabel('Password').fill('wrong');
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.getByText('Incorrect password.').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await ended.getByLabel('Password').fill(password);
    await ended.getByRole('button', { name: 'Sign in again' }).click();
    await ended.waitFor({ state: 'detached' });

    await eventually(async () => expect(await field('Name').inputValue()).to.equal('Typed with care'));
    await button('Create Key').click();
    await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
    await button("I've Saved It").click();
    await row('Typed with care').waitFor();
  });
});
