export type Sort<Column extends string> = { column: Column; isDescending: boolean };

/** What a column sorts by. Texts sort as people expect; null sorts last, whatever the direction. */
export type SortValue = string | number | null;

const texts = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** The rows in the order of a column; equal rows keep theirs. */
export function sorted<Row>(rows: readonly Row[], sortValue: (row: Row) => SortValue, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [a, b] = [sortValue(one), sortValue(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (typeof a === 'number' && typeof b === 'number' ? a - b : texts.compare(String(a), String(b)));
  });
}

/** The sort after a press on a column's head: that column, and at a second press the other direction. */
export function sortAfterPress<Column extends string>(sort: Sort<Column>, column: Column, startsDescending: boolean): Sort<Column> {
  return { column, isDescending: sort.column === column ? !sort.isDescending : startsDescending };
}
