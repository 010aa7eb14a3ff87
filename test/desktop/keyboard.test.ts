import { type ConsoleHarness, openConsole, untilFocused } from '../support/console-harness.ts';
import { describeDesktop } from '../support/electron.ts';

let harness: ConsoleHarness;
const dialog = (name: string) => harness.page.getByRole(/Revoke|Save|gone/.test(name) ? 'alertdialog' : 'dialog', { name });
const row = (name: string) => harness.page.getByRole('row', { name });

describeDesktop('the console, with only a keyboard', () => {
  // The first field has the focus only if no address is remembered.
  beforeEach(async () => {
    harness = await openConsole();
  });
  afterEach(() => harness.close());

  it('can create and revoke a key', async () => {
    const { page } = harness;
    const { keyboard } = page;
    await page.getByLabel('Server address').waitFor();
    await keyboard.type(harness.core.url);
    await keyboard.press('Tab');
    await keyboard.type(harness.tenants.users.account.email);
    await keyboard.press('Tab');
    await keyboard.type('correct horse battery staple');
    await keyboard.press('Enter');
    await page.getByText('No API keys yet').waitFor();

    await tabTo('Create API key');
    await keyboard.press('Enter');
    await untilFocused(page.getByLabel('Name', { exact: true }));
    await keyboard.type('Keyboard key');
    await keyboard.press('Tab');
    await keyboard.press('ArrowRight');
    await keyboard.press('ArrowRight');
    await page.getByText(/^Works until /).waitFor();
    await tabTo('Create Key');
    await keyboard.press('Enter');
    await dialog('Save your key').waitFor();
    await tabTo("I've Saved It");
    await keyboard.press('Enter');

    await untilFocused(row('Keyboard key'));
    await keyboard.press('Delete');
    // The button is enabled only once the core has reported the effects of revoking the key.
    await dialog('Revoke API Key?').getByRole('button', { name: 'Revoke', disabled: false }).waitFor();
    await tabTo('Revoke');
    await keyboard.press('Enter');
    await page.getByText('No API keys yet').waitFor();
  });

  /** Presses Tab until the button with that name has the focus. */
  async function tabTo(name: string): Promise<void> {
    for (let presses = 0; presses < 40; presses++) {
      if ((await harness.page.evaluate('document.activeElement.textContent.trim()')) === name) return;
      await harness.page.keyboard.press('Tab');
    }
    throw new Error(`${name} can't be reached with the keyboard.`);
  }
});
