import { expect } from 'chai';
import type { Home } from '../../support/browser.ts';
import { type EnginePage, fillInKey, signInAs } from '../../support/console-harness.ts';
import { openCore } from '../../support/core.ts';
import { walkThrough } from '../../support/screen-walkthrough.ts';
import { skip } from '../../support/suites.ts';
import { placeCall } from '../../support/tenants.ts';

export const usualSize = { width: 1280, height: 800 };
/** In CSS pixels: the usual window, a low one, a tablet, and a phone or a narrow window at 200%. */
export const commonSizes = [usualSize, { width: 1280, height: 500 }, { width: 800, height: 900 }, { width: 320, height: 900 }];
/** The common sizes, and in addition a narrow window at 400%, and a narrow window at 100%. From 1,248 pixels on, no style depends on the width. */
const allSizes = [...commonSizes, { width: 240, height: 900 }, { width: 480, height: 900 }];

/**
 * How many pixels any element scrolls sideways, how many pixels taller any dialog is than its content, how many pixels any badge sticks out of
 * its cell, and how many texts are so narrow that they have one letter per line.
 */
const measure = `[
  Math.max(...[document.scrollingElement, ...document.querySelectorAll('.shell, .page, .details, dialog')]
    .map((each) => each.scrollWidth - each.clientWidth)),
  Math.max(0, ...[...document.querySelectorAll('dialog[open]')].map((dialog) => {
    const { height } = dialog.getBoundingClientRect();
    // The rows of a grid would otherwise grow together with it.
    dialog.style.alignContent = 'start';
    const { top } = dialog.getBoundingClientRect();
    const { paddingBottom, borderBottomWidth } = getComputedStyle(dialog);
    const bottom = Math.max(...[...dialog.children].map((child) => child.getBoundingClientRect().bottom));
    dialog.style.alignContent = '';
    return Math.round(height - (bottom - top) - parseFloat(paddingBottom) - parseFloat(borderBottomWidth));
  })),
  Math.max(0, ...[...document.querySelectorAll('td .badge')]
    .map((badge) => Math.round(badge.getBoundingClientRect().right - badge.closest('td').getBoundingClientRect().right))),
  [...document.querySelectorAll('label, p, dt, dd, button')].map((each) => each.getBoundingClientRect())
    .filter(({ width, height }) => height > 4 * width && width > 1).length,
]`;

type Engine<Shown extends EnginePage> = {
  open: (url: string) => Promise<Home<Shown>>;
  sizes?: readonly { width: number; height: number }[];
  /** Finds problems that the common checks don't cover. Runs on every screen, at the last size. */
  inspect?: (page: Shown) => Promise<string[]>;
};

const opensEveryScreen = process.env['ENGINES'] === 'all';

/**
 * Tests the console in a browser engine. An engine without `inspect` opens every screen only with `ENGINES=all`, because that takes
 * minutes.
 */
export function testEngine<Shown extends EnginePage>({ open, sizes = allSizes, inspect }: Engine<Shown>): void {
  // In Chromium, other tests show this.
  if (!inspect) {
    it('let a user sign in, create a key and revoke it', async () => {
      const harness = await openCore();
      const { core, tenants } = harness;
      const { page, close } = await open(core.url);
      try {
        const button = (name: string) => page.getByRole('button', { name, exact: true });
        await signInAs({ ...harness, page }, 'account');
        await fillInKey(page, 'Canary');
        await button('Create Key').click();
        await page.getByRole('alertdialog', { name: 'Save your key' }).waitFor();
        const keyValue = await page.getByLabel('Key value').inputValue();
        await button("I've Saved It").click();
        await page.getByText('Canary is ready to use.').waitFor();
        expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(202);

        await button('Revoke Canary').click();
        await page.getByText('not yet dialed').waitFor();
        await button('Revoke').click();
        await page.getByText('No API keys yet').waitFor();
        expect((await placeCall(core.url, tenants.campaign.id, keyValue)).status).to.equal(401);
        await button('Sign out').click();
        await page.getByLabel('Email').waitFor();
      } finally {
        await close();
        await harness.close();
      }
    });
  }

  it("never scroll sideways, and have no dialog that's taller than its content, no badge that covers the next cell and no text that's too narrow", async function () {
    if (!inspect && !opensEveryScreen) skip(this, 'ENGINES=all opens every screen in this engine');
    this.timeout(480_000);
    const complaints: string[] = [];
    let stops = 0;
    for await (const { name, page } of walkThrough(open)) {
      stops += 1;
      for (const size of sizes) {
        await page.setViewportSize(size);
        const measured = await page.evaluate(measure);
        const [wide, high, out, narrow] = Array.isArray(measured) ? measured.map(Number) : [];
        if (wide !== 0) complaints.push(`${name} scrolls ${wide} px sideways at ${size.width} × ${size.height}`);
        if (high !== 0) complaints.push(`${name} has a dialog that is ${high} px too tall at ${size.width} × ${size.height}`);
        if (out !== 0) complaints.push(`${name} has a badge that is ${out} px outside its cell at ${size.width} × ${size.height}`);
        if (narrow !== 0) complaints.push(`${name} has ${narrow} texts that are too narrow at ${size.width} × ${size.height}`);
      }
      complaints.push(...((await inspect?.(page)) ?? []).map((complaint) => `${name}: ${complaint}`));
      await page.setViewportSize(usualSize);
    }
    expect(complaints.join('\n')).to.equal('');
    expect(stops).to.be.at.least(39);
  });
}
