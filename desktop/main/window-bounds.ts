import type { Rectangle } from 'electron';
import type { Settings } from './settings.ts';

type WindowBounds = NonNullable<Settings['window']>;

/** The part of the title bar that must be visible to drag the window, in device-independent pixels. */
const grip = { width: 120, height: 32 };
const defaultSize = { width: 1280, height: 800 };

/**
 * Returns where to open the window: at its last bounds, if enough of its title bar would be on a screen to drag it. Otherwise, in the
 * middle of the primary screen, at its last size or as large as fits.
 *
 * @param last null at the first start
 * @param screens the work areas of all screens, the primary one first
 */
export function boundsOnScreen(
  last: WindowBounds | null,
  screens: readonly Rectangle[],
): Partial<Rectangle> & { width: number; height: number } {
  const { width, height } = last ?? defaultSize;
  const screen = last && screens.find((area) => isReachable(last, area));
  const room = screen ?? screens[0] ?? { width, height };
  const size = { width: Math.min(width, room.width), height: Math.min(height, room.height) };
  return screen ? { ...size, x: last.x, y: last.y } : size;
}

function isReachable({ x, y, width }: WindowBounds, area: Rectangle): boolean {
  const visibleWidth = Math.min(x + width, area.x + area.width) - Math.max(x, area.x);
  return visibleWidth >= grip.width && y >= area.y && y + grip.height <= area.y + area.height;
}
