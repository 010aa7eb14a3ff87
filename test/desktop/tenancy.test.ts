import { expect } from 'chai';
import { type Desk, openDesk, signInAs } from '../support/console.ts';
import { describeDesktop } from '../support/electron.ts';
import { createKeyOn } from '../support/furniture.ts';

describeDesktop('the tenancy switcher', () => {
  let desk: Desk;
  beforeEach(async () => {
    desk = await openDesk();
    for (const user of ['account', 'sibling', 'other'] as const) await createKeyOn(desk, desk.world.users[user], `Key of ${user}`);
    await signInAs(desk, 'staff');
  });
  afterEach(() => desk.close());

  const names = () => desk.page.locator('tbody th').allInnerTexts();

  it('asks for a tenancy before there are keys and calls to show', async () => {
    await desk.page.getByText('Choose an account or partner first').waitFor();
    await desk.page.getByRole('button', { name: 'Calls' }).click();
    await desk.page.getByText('Choose an account or partner first').waitFor();
  });

  it('finds an account with the keyboard alone, and everything follows', async () => {
    const { page } = desk;
    const { keyboard } = page;
    await desk.desktop.app.evaluate(({ BrowserWindow }) => BrowserWindow.getAllWindows()[0]?.webContents.send('command', 'switch-tenancy'));
    await page.getByRole('combobox').waitFor();
    await keyboard.type('clinic');
    await page.getByText('2 matches').waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await page.getByRole('row', { name: 'Key of sibling' }).waitFor();
    expect(await names()).to.deep.equal(['Key of sibling']);
    await page.getByRole('button', { name: 'People' }).click();
    await page.getByRole('row', { name: 'Sue Sibling' }).waitFor();
    expect(await page.getByRole('row', { name: 'Tom Teammate' }).count()).to.equal(0);
  });

  it('selects what is typed, however fast Enter comes', async () => {
    const { page } = desk;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('option').first().waitFor();
    await page.keyboard.insertText('Southgate');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Partner Southgate Calling' }).waitFor();
  });

  it('selects a partner, and none again', async () => {
    const { page } = desk;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('combobox').fill('northwind');
    await page.getByRole('option', { name: 'Northwind Voice Partner' }).click();
    await page.getByRole('row', { name: 'Key of sibling' }).waitFor();
    expect((await names()).toSorted()).to.deep.equal(['Key of account', 'Key of sibling']);
    await page.getByRole('button', { name: 'Northwind Voice' }).click();
    await page.getByRole('button', { name: 'Select none' }).click();
    await page.getByText('Choose an account or partner first').waitFor();
  });

  it('says that nothing matches', async () => {
    await desk.page.getByRole('button', { name: 'None selected' }).click();
    await desk.page.getByRole('combobox').fill('no such place');
    await desk.page.getByText('No account or partner matches “no such place”.').waitFor();
  });

  it('creates a staff key for the tenancy, and says what it will reach', async () => {
    const { page } = desk;
    await page.getByRole('button', { name: 'None selected' }).click();
    await page.getByRole('combobox').fill('blue');
    await page.getByRole('option', { name: /Blue Clinic/ }).click();
    await page.getByRole('button', { name: 'Create API Key' }).click();
    await page.getByText('every campaign of Blue Clinic').waitFor();
  });
});
