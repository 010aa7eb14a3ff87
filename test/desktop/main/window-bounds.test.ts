import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { boundsOnScreen, SettingsFile } from '../../../desktop/main/settings.ts';
import { freshDirectory } from '../../support/databases.ts';

const primary = { x: 0, y: 24, width: 1600, height: 1000 };
const second = { x: 1600, y: 0, width: 1280, height: 1024 };
const last = (x: number, y: number, width = 900, height = 600) => ({ x, y, width, height, isMaximized: false });

describe("a new window's bounds", () => {
  it('are the default size at the first start', () => {
    expect(boundsOnScreen(null, [primary, second])).to.deep.equal({ width: 1280, height: 800 });
  });

  it('are the previous bounds, even on a second screen', () => {
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

describe('the file with the settings', () => {
  const damaged = '{"window":{"x":"left"}';
  for (const [problem, damage] of [
    ['is damaged', (path: string) => writeFileSync(path, damaged)],
    ["can't be read", (path: string) => mkdirSync(path)],
  ] as const)
    it(`is kept under another name if it ${problem}, and the bounds are the default ones`, async () => {
      const folder = freshDirectory();
      const path = join(folder, 'settings.json');
      damage(path);
      const settings = new SettingsFile(folder);
      expect(settings.current.window).to.equal(null);
      const window = { x: 0, y: 0, width: 900, height: 600, isMaximized: false };
      await settings.change({ window });
      expect(JSON.parse(readFileSync(path, 'utf8')).window).to.deep.equal(window);
      const [aside = '', ...others] = readdirSync(folder).filter((name) => name.startsWith('settings.json.unreadable-'));
      expect([aside === '', others]).to.deep.equal([false, []]);
      if (problem === 'is damaged') expect(readFileSync(join(folder, aside), 'utf8')).to.equal(damaged);
    });
});
