import { expect } from 'chai';
import { limits } from '#contract/limits.ts';
import { pageOf, rowsForPage } from '../../core/domain/paging.ts';

const page = (count: number) =>
  pageOf(
    Array.from({ length: count }, (_, n) => n),
    String,
  );

describe('a page', () => {
  it('has no next page if everything fits, empty or full', () => {
    expect(page(0)).to.deep.equal({ items: [], nextCursor: null });
    expect(page(limits.page).nextCursor).to.equal(null);
    expect(page(limits.page).items).to.have.length(limits.page);
  });
  it('ends at its cursor, without the extra row that shows there is a next page', () => {
    const { items, nextCursor } = page(rowsForPage);
    expect([items.length, nextCursor]).to.deep.equal([limits.page, String(limits.page - 1)]);
  });
});
