import { expect } from 'chai';
import { boundsOnScreen } from '../../../desktop/main/settings.ts';

const primary = { x: 0, y: 24, width: 1600, height: 1000 };
const second = { x: 1600, y: 0, width: 1280, height: 1024 };
const last = (x: number, y: number, width = 900, height = 600) => ({ x, y, width, height, isMaximized: false });

describe("a new window's bounds", () => {
  it('are the default size at the first start', () => {
    expect(boundsOnScreen(null, [primary, second])).to.deep.equal({ width: 1280, height: 800 });
  });

  it('are the previous bounds', () => {
    expect(boundsOnScreen(last(100, 80), [primary])).to.deep.equal({ x: 100, y: 80, width: 900, height: 600 });
  });

  it('are the previous bounds on a second screen', () => {
    expect(boundsOnScreen(last(1700, 80), [primary, second])).to.deep.equal({ x: 1700, y: 80, width: 900, height: 600 });
  });

  it('are the previous bounds if most of the window is off the screen, but its title bar can be dragged', () => {
    expect(boundsOnScreen(last(1400, 900), [primary])).to.deep.equal({ x: 1400, y: 900, width: 900, height: 600 });
  });

  for (const [what, bounds] of Object.entries({
    'on a disconnected screen': last(1700, 80),
    'too far to the right': last(1550, 80),
    'too far to the left': last(-850, 80),
    'too far down': last(100, 1010),
    'with its title bar above the screen': last(100, -40),
  })) {
    it(`keep only their size if the window was ${what}`, () => {
      expect(boundsOnScreen(bounds, [primary])).to.deep.equal({ width: 900, height: 600 });
    });
  }

  it('are no larger than the screen', () => {
    expect(boundsOnScreen(last(0, 24, 3000, 2000), [primary])).to.deep.equal({ x: 0, y: 24, width: 1600, height: 1000 });
    expect(boundsOnScreen(null, [{ x: 0, y: 0, width: 1024, height: 700 }])).to.deep.equal({ width: 1024, height: 700 });
  });
});
