import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DurationLike } from 'luxon';
import { type FakeClock, fakeClock } from './clock.ts';
import { freshDirectory } from './databases.ts';

/** A clock for cores in separate processes. @property environment makes a core use it */
export type ClockInFile = FakeClock & { environment: Record<string, string> };

export function clockInFile(start: string): ClockInFile {
  const clock = fakeClock(start);
  const { environment, write } = clockFile(String(clock.now()));
  return {
    environment,
    now: clock.now,
    set(instant: string) {
      clock.set(instant);
      write(String(clock.now()));
    },
    advance(by: DurationLike) {
      clock.advance(by);
      write(String(clock.now()));
    },
  };
}

/** A clock for cores in separate processes that keeps running. @property setAhead sets it this many ms ahead of the machine's clock */
export function clockAhead(): { environment: Record<string, string>; setAhead(ms: number): void } {
  const { environment, write } = clockFile('+0');
  return { environment, setAhead: (ms) => write(`+${ms}`) };
}

function clockFile(content: string) {
  const file = join(freshDirectory(), 'now');
  const write = (text: string) => {
    // Renaming the file keeps cores from reading it half-written.
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  write(content);
  return { write, environment: { NODE_OPTIONS: `--import=${new URL('read-clock-from-file.ts', import.meta.url)}`, CLOCK_FILE: file } };
}
