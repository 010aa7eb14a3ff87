import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DurationLike } from 'luxon';
import { type FakeClock, fakeClock } from './clock.ts';
import { freshDirectory } from './databases.ts';

/** A clock for cores in separate processes. @property environment makes a core use it */
export type ClockInFile = FakeClock & { environment: Record<string, string> };

export function clockInFile(start: string): ClockInFile {
  const clock = fakeClock(start);
  const file = join(freshDirectory(), 'now');
  const write = () => {
    // Renaming the file keeps cores from reading it half-written.
    writeFileSync(`${file}.new`, String(clock.now()));
    renameSync(`${file}.new`, file);
  };
  write();
  return {
    now: clock.now,
    set(instant: string) {
      clock.set(instant);
      write();
    },
    advance(by: DurationLike) {
      clock.advance(by);
      write();
    },
    environment: { NODE_OPTIONS: `--import=${new URL('read-clock-from-file.ts', import.meta.url)}`, CLOCK_FILE: file },
  };
}
