import { expect } from 'chai';
import { limits } from '#contract/limits.ts';
import { idCursors, toPage } from '../../core/domain/paging.ts';

const cursors = idCursors('numbers');
const page = (count: number) =>
  toPage(
    cursors,
    limits.page,
    Array.from({ length: count }, (_, n) => n),
    String,
  );

describe('a page', () => {
  it("has no next page if all rows fit, even if it's empty or exactly full", () => {
    expect(page(0)).to.deep.equal({ items: [], nextCursor: null });
    expect(page(limits.page).nextCursor).to.equal(null);
    expect(page(limits.page).items).to.have.length(limits.page);
  });
  it("ends at its cursor, and doesn't include the extra row that shows that there is a next page", () => {
    const { items, nextCursor } = page(limits.page + 1);
    expect([items.length, cursors.read(nextCursor)]).to.deep.equal([limits.page, String(limits.page - 1)]);
  });
});
