import { expect } from 'chai';
import { day, defineFilters, oneOf, oneOfNumbers, pageNumber, sortBy, text } from '../../../desktop/renderer/state/filters.ts';

const fields = defineFilters<{
  campaign: string;
  open: string;
  search: string;
  state: 'failed' | 'busy' | null;
  from: string;
  size: number;
  page: number;
  sort: { column: 'name' | 'used'; isDescending: boolean };
}>('calls', ['campaign', 'open'], {
  campaign: text(),
  open: text(),
  search: text(),
  state: oneOf<'failed' | 'busy', null>(['failed', 'busy'], null),
  from: day(),
  size: oneOfNumbers([10, 20], 20),
  page: pageNumber(),
  sort: sortBy(['name', 'used'], { column: 'name', isDescending: false }),
});
const written = (view: Partial<typeof fields.initial>) => {
  const { path, query } = fields.write({ ...fields.initial, ...view });
  return `${path}?${query}`;
};
const read = (parts: string[], query: string) => fields.read(parts, new URLSearchParams(query));

describe('an address', () => {
  it('contains only the values that differ from the default', () => {
    expect(written({})).to.equal('?');
    expect(
      written({ campaign: 'c/1', open: 'a', search: 'Zoë & Co', state: 'busy', page: 2, sort: { column: 'used', isDescending: true } }),
    ).to.equal('/c%2F1/a?search=Zo%C3%AB+%26+Co&state=busy&page=3&sort=-used');
  });

  it("doesn't contain a call without its campaign", () => {
    expect(written({ open: 'a' })).to.equal('?');
  });

  it('restores the same view', () => {
    const view = {
      campaign: 'c',
      open: 'a',
      search: 'مفتاح',
      state: 'failed',
      from: '2026-11-08',
      size: 10,
      page: 1,
      sort: { column: 'used', isDescending: false },
    } as const;
    const { query } = fields.write(view);
    expect(read(['c', 'a'], query.toString())).to.deep.equal(view);
  });

  it("falls back to the default if it's invalid", () => {
    expect(read([], 'state=x&from=2026-13-01&size=7&page=0&sort=-x&other=1')).to.deep.equal(fields.initial);
    expect(read(['c', 'a', 'b'], '')).to.equal(null);
  });
});
