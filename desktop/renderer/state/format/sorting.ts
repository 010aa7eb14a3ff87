export type Sort<Column extends string> = { column: Column; isDescending: boolean };

/** The value that a column sorts by. Texts sort in natural order; null sorts last in either direction. */
export type SortValue = string | number | null;

const texts = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Sorts rows by a column; equal rows keep their order. */
export function sorted<Row>(rows: readonly Row[], sortValue: (row: Row) => SortValue, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((rowA, rowB) => {
    const [first, second] = [sortValue(rowA), sortValue(rowB)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return sign * (typeof first === 'number' && typeof second === 'number' ? first - second : texts.compare(String(first), String(second)));
  });
}

/** Returns the sort order after a click on a column header: by that column, or in the other direction on a second click. */
export function sortAfterPress<Column extends string>(sort: Sort<Column>, column: Column, startsDescending: boolean): Sort<Column> {
  return { column, isDescending: sort.column === column ? !sort.isDescending : startsDescending };
}
