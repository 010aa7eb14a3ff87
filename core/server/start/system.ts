import { randomBytes, randomUUIDv7 } from 'node:crypto';
import { instant } from '../../domain/instant.ts';
import type { Clock, Randomness } from '../../domain/ports.ts';

export const systemClock: Clock = { now: () => instant(Date.now()) };

export const systemRandomness: Randomness = {
  bytes: (size) => randomBytes(size),
  // UUIDv7 (RFC 9562 §5.7): a timestamp, followed by 74 random bits.
  id: () => randomUUIDv7(),
  idsAround: (at) => ({ lowestId: firstIdAt(at - idSkew), highestId: firstIdAt(at + idSkew) }),
};

/**
 * In ms. It's more than the clocks of two machines may differ. An ID is generated within milliseconds of the time that's stored with it.
 */
const idSkew = 600_000;

function firstIdAt(ms: number): string {
  const time = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
