export type Pattern = { text: string; isExact: boolean } | { source: string; flags: string };

/** A step of a locator: what to look for in the elements of the previous one. */
export type Step =
  | { by: 'role'; role: string; name: Pattern | null }
  | { by: 'label' | 'text'; pattern: Pattern }
  | { by: 'css'; selector: string }
  | { by: 'position'; index: number };

/**
 * Finds the same visible elements as Playwright's locator with these steps, but supports only what the tests use. Runs in the page, so it
 * can't use anything else in this file.
 */
export function find(steps: readonly Step[]): Element[] {
  const native: Readonly<Record<string, string>> = {
    button: 'button',
    combobox: 'select',
    complementary: 'aside',
    dialog: 'dialog',
    heading: 'h1, h2, h3',
    link: 'a[href]',
    radio: 'input[type="radio"]',
    row: 'tr',
  };
  const readText = (node: Node): string => {
    if (node instanceof Text) return node.data;
    if (!(node instanceof Element) || node.ariaHidden === 'true') return '';
    return node.ariaLabel ?? readContent(node);
  };
  const readContent = (element: Element): string =>
    [...element.childNodes].map((child) => (child instanceof HTMLElement ? ` ${readText(child)} ` : readText(child))).join('');
  const readLabel = (element: Element): string | null => {
    const ids = element.getAttribute('aria-labelledby')?.split(' ') ?? [];
    if (ids.length > 0) return ids.map((id) => document.getElementById(id)?.textContent ?? '').join(' ');
    const labels = 'labels' in element && element.labels instanceof NodeList ? [...element.labels] : [];
    return element.ariaLabel ?? (labels.length > 0 ? labels.map(readText).join(' ') : null);
  };
  const matches = (text: string | null, pattern: Pattern): boolean => {
    if (text === null) return false;
    const normal = text.replaceAll(/\s+/g, ' ').trim();
    if ('source' in pattern) return new RegExp(pattern.source, pattern.flags).test(normal);
    return pattern.isExact ? normal === pattern.text : normal.toLowerCase().includes(pattern.text.toLowerCase());
  };
  const isVisible = (element: Element) => element.getClientRects().length > 0 && element.checkVisibility({ visibilityProperty: true });

  let elements: Element[] = [document.documentElement];
  const select = (selector: string) => elements.flatMap((each) => [...each.querySelectorAll(selector)]).filter(isVisible);
  for (const step of steps) {
    if (step.by === 'position') elements = elements.slice(step.index).slice(0, 1);
    else if (step.by === 'css') elements = select(step.selector);
    else if (step.by === 'label') elements = select('*').filter((each) => matches(readLabel(each), step.pattern));
    else if (step.by === 'text') {
      const around = select('*').filter((each) => matches(each.textContent, step.pattern));
      elements = around.filter((each) => !around.some((other) => other !== each && each.contains(other)));
    } else if (step.by === 'role') {
      const { role, name } = step;
      const ofRole = select(`[role="${role}"], :is(${native[role] ?? `[role="${role}"]`}):not([role])`);
      elements = ofRole.filter((each) => name === null || matches(readLabel(each) ?? readContent(each), name));
    }
  }
  return elements;
}
