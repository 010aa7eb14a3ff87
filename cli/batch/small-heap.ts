import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const millisecondsBetweenCollections = 250;
let collect: (() => void) | undefined;

/**
 * V8 takes memory to save work: 64 MB for young objects, and hundreds of megabytes of old ones before it collects them for the first time. A
 * million lines took up to 430 MB so, and take less than 200 MB to check with this.
 *
 * @returns what to call at each line
 */
export function keepHeapSmall(): () => void {
  // No option of Node's can be given to a command that npm has installed.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--expose-gc');
  let lines = 0;
  let collectedAt = performance.now();
  return () => {
    // The clock is not asked a million times.
    if (++lines % 1000 !== 0 || performance.now() - collectedAt < millisecondsBetweenCollections) return;
    collect ??= runInNewContext('gc');
    collect?.();
    collectedAt = performance.now();
  };
}
