const focusable = 'button, input, [data-tip], [data-clip]';
const steps: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
const sidesteps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** Moves the focus to another row, or to another part of the row. @returns whether the key has this effect */
export function moveFocus(key: string, from: HTMLElement, table: HTMLElement): boolean {
  const row = from.closest('tr');
  if (!row) return false;
  const rows = [...table.querySelectorAll<HTMLElement>('tr')];
  const focusableParts = (of: HTMLElement) => [
    ...(of.tabIndex >= -1 && of.id !== '' ? [of] : []),
    ...[...of.querySelectorAll<HTMLElement>(focusable)].filter(hasSomethingToShow),
  ];
  const step = steps[key];
  const sidestep = sidesteps[key];
  let to: HTMLElement | undefined;
  if (step !== undefined) to = rows[rows.indexOf(row) + step];
  else if (key === 'Home') to = rows[1];
  else if (key === 'End') to = rows.at(-1);
  else if (sidestep !== undefined) to = focusableParts(row)[Math.max(0, focusableParts(row).indexOf(from) + sidestep)];
  else return false;
  // The header row can't get the focus itself.
  (to?.id === '' && to instanceof HTMLTableRowElement ? focusableParts(to)[0] : to)?.focus();
  return true;
}

function hasSomethingToShow(element: HTMLElement): boolean {
  return element.dataset['clip'] === undefined || element.scrollWidth > element.clientWidth;
}

const rowPrefix = 'row-';

export function rowId(id: string): string {
  return `${rowPrefix}${id}`;
}

/** Moves the focus to a row once it's rendered, or to the heading if there is no row. */
export function focusRow(id: string | null): void {
  requestAnimationFrame(() => {
    const row = id === null ? null : document.getElementById(rowId(id));
    row?.scrollIntoView({ block: 'nearest' });
    (row ?? document.querySelector<HTMLElement>('main h1'))?.focus();
  });
}

/** Returns the row that gets the focus when this row disappears: the next row, or for the last row, the previous one. */
export function adjacentRowId(id: string): string | null {
  const row = document.getElementById(rowId(id));
  const adjacent = row?.nextElementSibling ?? row?.previousElementSibling;
  return adjacent?.id.slice(rowPrefix.length) ?? null;
}
