import { expect } from 'chai';
import { sortAfterPress, sorted } from '../../../desktop/renderer/state/format.ts';

describe('a sorted column', () => {
  const rows = ['Key 10', 'key 2', null, 'Äpfel', 'Key 2'];

  it('sorts text in natural order, and keeps equal rows in order', () => {
    expect(sorted(rows, (row) => row, false)).to.deep.equal(['Äpfel', 'key 2', 'Key 2', 'Key 10', null]);
  });

  it('puts missing values last in either direction', () => {
    expect(sorted([2, null, 1], (row) => row, true)).to.deep.equal([2, 1, null]);
    expect(sorted([2, null, 1], (row) => row, false)).to.deep.equal([1, 2, null]);
  });

  it('starts in its default direction on the first click, and reverses on the second', () => {
    const first = sortAfterPress({ column: 'name', isDescending: false }, 'created', true);
    expect(first).to.deep.equal({ column: 'created', isDescending: true });
    expect(sortAfterPress(first, 'created', true)).to.deep.equal({ column: 'created', isDescending: false });
  });
});
