import type { Rectangle } from 'electron';
import type { Settings } from './settings.ts';

export type Place = NonNullable<Settings['window']>;

/** As much of the window's upper edge as lets one take hold of it, in device-independent pixels. */
const handle = { width: 120, height: 32 };
const usual = { width: 1100, height: 760 };

/**
 * Where the window opens: where it was, if it can be taken hold of there; screens come and go. Otherwise in the middle of the main one, in the
 * size that it had, as far as there is room for it.
 *
 * @param kept from the last time, if there was one
 * @param screens the areas of all screens that are free for windows, the main one first
 */
export function placeOnScreen(kept: Place | null, screens: readonly Rectangle[]): Partial<Rectangle> & { width: number; height: number } {
  const { width, height } = kept ?? usual;
  const screen = kept && screens.find((area) => canBeHeld(kept, area));
  const room = screen ?? screens[0] ?? { width, height };
  const size = { width: Math.min(width, room.width), height: Math.min(height, room.height) };
  return screen ? { ...size, x: kept.x, y: kept.y } : size;
}

function canBeHeld({ x, y, width }: Place, area: Rectangle): boolean {
  const seenWidth = Math.min(x + width, area.x + area.width) - Math.max(x, area.x);
  return seenWidth >= handle.width && y >= area.y && y + handle.height <= area.y + area.height;
}
