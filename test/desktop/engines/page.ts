import type { Home } from '../../support/browser.ts';
import type { EngineLocator, EnginePage } from '../../support/console-harness.ts';
import { eventually } from '../../support/until.ts';
import type { Driver } from './driver.ts';
import { find, type Pattern, type Step } from './find.ts';

const toPattern = (text: string | RegExp, isExact = false): Pattern =>
  typeof text === 'string' ? { text, isExact } : { source: text.source, flags: text.flags };

/** Returns the methods of Playwright that find elements. */
function finder(driver: Driver, steps: readonly Step[] = []) {
  const next = (step: Step) => locator(driver, [...steps, step]);
  return {
    getByRole: (role, { name, exact } = {}) => next({ by: 'role', role, name: name === undefined ? null : toPattern(name, exact) }),
    getByLabel: (text, { exact } = {}) => next({ by: 'label', pattern: toPattern(text, exact) }),
    getByText: (text, { exact } = {}) => next({ by: 'text', pattern: toPattern(text, exact) }),
    locator: (selector) => next({ by: 'css', selector }),
  } satisfies Partial<EngineLocator>;
}

/** As in Playwright, each action waits for its element. */
function locator(driver: Driver, steps: readonly Step[]): EngineLocator {
  const at = (index: number) => locator(driver, [...steps, { by: 'position', index }]);
  const elements = `(${find})(${JSON.stringify(steps)})`;
  /** @param action the source of a function of the element and `argument` */
  const act = async (action: string, argument: string | null = null): Promise<unknown> => {
    let result: unknown;
    await eventually(async () => {
      const acting = `((element, argument) => {
        if (!element) throw new Error('not found');
        return (${action})(element, argument);
      })(${elements}[0], ${JSON.stringify(argument)})`;
      result = await driver.evaluate(acting);
    }).catch((error: Error) => {
      throw new Error(`${JSON.stringify(steps)}: ${error.message}`);
    });
    return result;
  };
  const click = () =>
    eventually(async () => {
      const { x, y } = Object(await act(`${aim}`));
      const actions = [
        { type: 'pointerMove', x, y },
        { type: 'pointerDown', button: 0 },
        { type: 'pointerUp', button: 0 },
      ];
      await driver.perform([{ type: 'pointer', id: 'mouse', actions }]);
      // The click may have loaded another page, which doesn't have the function.
      const isHit = await driver.evaluate('endClick()').catch(() => true);
      if (isHit === false) throw new Error(`The element moved: ${JSON.stringify(steps)}`);
    });
  return {
    ...finder(driver, steps),
    first: () => at(0),
    last: () => at(-1),
    waitFor: ({ state = 'visible' } = {}) =>
      eventually(async () => {
        const isThere = await driver.evaluate(`${elements}.length > 0`);
        if (isThere !== (state === 'visible')) throw new Error(`${JSON.stringify(steps)} isn't ${state}.`);
      }),
    click,
    check: async () => {
      if ((await act('({ checked }) => checked')) !== true) await click();
    },
    focus: async () => void (await act('(element) => element.focus()')),
    fill: async (text) => void (await act(`(element, text) => (${change})(element, text)`, text)),
    selectOption: (label) =>
      act(`(element, label) => (${change})(element, [...element.options].find((each) => each.label === label).value)`, label),
    inputValue: async () => String(await act('({ value }) => value')),
  };
}

/**
 * Runs in the page. Waits until the element doesn't move and nothing covers it. If it still moves before the click, no other element gets
 * the click, and `endClick()` returns false.
 *
 * @returns where to click
 */
async function aim(element: HTMLElement): Promise<{ x: number; y: number }> {
  const center = () => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return { x: Math.floor(left + width / 2), y: Math.floor(top + height / 2) };
  };
  element.scrollIntoView({ block: 'nearest' });
  const before = center();
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const { x, y } = center();
  if (x !== before.x || y !== before.y) throw new Error("It's moving.");
  if (element.matches(':disabled, [aria-disabled="true"]')) throw new Error("It's disabled.");
  const top = document.elementFromPoint(x, y);
  if (!element.contains(top)) throw new Error(`It's covered by ${top?.outerHTML.slice(0, 80)}.`);
  const guard = new AbortController();
  let isHit = true;
  const check = (event: Event) => {
    if (event.target instanceof Node && element.contains(event.target)) return;
    isHit = false;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
    addEventListener(type, check, { capture: true, signal: guard.signal });
  const endClick = () => {
    guard.abort();
    return isHit;
  };
  Object.assign(window, { endClick });
  return { x, y };
}

/** Runs in the page. */
function change(element: HTMLInputElement | HTMLSelectElement, value: string): void {
  element.focus();
  element.value = value;
  for (const type of ['input', 'change']) element.dispatchEvent(new Event(type, { bubbles: true }));
}

/** How WebDriver writes keys that aren't characters (W3C WebDriver, 17.4.2). */
const keys: Readonly<Record<string, string>> = { Tab: '\uE004', Enter: '\uE007', Escape: '\uE00C' };

/** Opens a page in a browser without Playwright. */
export async function openOver(driver: Driver, url: string): Promise<Home<EnginePage>> {
  await driver.goTo(url);
  const page: EnginePage = {
    ...finder(driver),
    keyboard: {
      async press(key) {
        const actions = ['keyDown', 'keyUp'].map((type) => ({ type, value: keys[key] ?? key }));
        await driver.perform([{ type: 'key', id: 'keyboard', actions }]);
      },
    },
    evaluate: driver.evaluate,
    setViewportSize: driver.resize,
  };
  return { page, choose: null, close: driver.close };
}
