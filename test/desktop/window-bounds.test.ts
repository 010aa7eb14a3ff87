import { expect } from 'chai';
import { boundsOnScreen } from '../../desktop/main/window-bounds.ts';

const main = { x: 0, y: 24, width: 1600, height: 1000 };
const second = { x: 1600, y: 0, width: 1280, height: 1024 };
const kept = (x: number, y: number, width = 900, height = 600) => ({ x, y, width, height, isMaximized: false });

describe('where the window opens', () => {
  it('is the middle of the screen at first', () => {
    expect(boundsOnScreen(null, [main, second])).to.deep.equal({ width: 1100, height: 760 });
  });

  it('is where it was', () => {
    expect(boundsOnScreen(kept(100, 80), [main])).to.deep.equal({ x: 100, y: 80, width: 900, height: 600 });
  });

  it('is where it was on the second screen', () => {
    expect(boundsOnScreen(kept(1700, 80), [main, second])).to.deep.equal({ x: 1700, y: 80, width: 900, height: 600 });
  });

  it('is where it was when its greater part is beyond the edge, but its title can be dragged', () => {
    expect(boundsOnScreen(kept(1400, 900), [main])).to.deep.equal({ x: 1400, y: 900, width: 900, height: 600 });
  });

  for (const [what, place] of Object.entries({
    'on a screen that is gone': kept(1700, 80),
    'too far to the right': kept(1550, 80),
    'too far to the left': kept(-850, 80),
    'too far down': kept(100, 1010),
    'with its title above the screen': kept(100, -40),
  })) {
    it(`is the middle, in its size, when it was ${what}`, () => {
      expect(boundsOnScreen(place, [main])).to.deep.equal({ width: 900, height: 600 });
    });
  }

  it('is no larger than the screen', () => {
    expect(boundsOnScreen(kept(0, 24, 3000, 2000), [main])).to.deep.equal({ x: 0, y: 24, width: 1600, height: 1000 });
    expect(boundsOnScreen(null, [{ x: 0, y: 0, width: 1024, height: 700 }])).to.deep.equal({ width: 1024, height: 700 });
  });
});
