import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { instant } from '../../domain/instant.ts';
import type { Clock, Randomness } from '../../domain/ports.ts';

export const systemClock: Clock = { now: () => instant(Date.now()) };

export const systemRandomness: Randomness = {
  bytes: (size) => randomBytes(size),
  // UUIDv7 (RFC 9562 §5.7): a timestamp, followed by 74 random bits.
  id: () => randomUUIDv7(),
  firstIdAt(at) {
    const time = Math.max(0, at).toString(16).padStart(12, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}`;
  },
};
