import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** A set of line numbers with one bit per line, since a file can have millions. */
export class LineSet {
  #bits = new Uint8Array(1024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(line: number): boolean {
    return ((this.#bits[line >> 3] ?? 0) & (1 << (line & 7))) !== 0;
  }

  add(line: number): void {
    if (this.has(line)) return;
    const at = line >> 3;
    if (at >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(at + 1, this.#bits.length * 2));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (line & 7));
    this.#size++;
  }
}

/** Identifies a text in a FirstLines: integers of up to 53 and 32 bits that are unique within a file. */
export type Fingerprint = { high: number; low: number };

/** Returns the first 80 bits of a digest. */
export function toFingerprint(digest: Buffer): Fingerprint {
  return { high: digest.readUIntBE(0, 6), low: digest.readUInt32BE(6) };
}

/**
 * Stores the first line with each fingerprint, in an open-addressing hash table: 16 bytes per slot, and five slots for every four lines. A
 * Map of strings would need five times as much: for a million lines, all the memory that the command may use.
 */
export class FirstLines {
  readonly #capacity: number;
  readonly #high: Float64Array;
  readonly #low: Uint32Array;
  /** 0 marks a free slot, since lines start at 1. */
  readonly #lines: Uint32Array;

  /** @param max the maximum number of fingerprints */
  constructor(max: number) {
    this.#capacity = Math.ceil(max * 1.25) + 1;
    this.#high = new Float64Array(this.#capacity);
    this.#low = new Uint32Array(this.#capacity);
    this.#lines = new Uint32Array(this.#capacity);
  }

  /** Stores the line unless an earlier one has the same fingerprint. @returns the earlier line */
  add(fingerprint: Fingerprint, line: number): number | undefined {
    const slot = this.#findSlot(fingerprint);
    const earlier = this.#lines[slot];
    if (earlier) return earlier;
    this.#high[slot] = fingerprint.high;
    this.#low[slot] = fingerprint.low;
    this.#lines[slot] = line;
    return undefined;
  }

  find(fingerprint: Fingerprint): number | undefined {
    return this.#lines[this.#findSlot(fingerprint)] || undefined;
  }

  /** Returns the slot that contains the fingerprint, or else the free slot where it belongs. */
  #findSlot({ high, low }: Fingerprint): number {
    // Fibonacci hashing: the upper bits of the product depend on all bits of the fingerprint.
    const hash = Math.imul(high ^ low, 0x9e37_79b1) >>> 0;
    let slot = Math.floor((hash / 0x1_0000_0000) * this.#capacity);
    while (this.#lines[slot] && (this.#high[slot] !== high || this.#low[slot] !== low)) slot = (slot + 1) % this.#capacity;
    return slot;
  }
}

const millisecondsBetweenCollections = 250;
let collect: (() => void) | undefined;

/**
 * Stops V8 from trading memory for speed. By default, it would use 64 MB for young objects, and hundreds of megabytes for old ones before
 * collecting them. Checking a million lines took up to 430 MB without this function, and takes less than 200 MB with it.
 *
 * @returns a function to call for each line
 */
export function keepHeapSmall(): () => void {
  // Set V8's options here, because npm can't pass options to Node.js for an installed command.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--expose-gc');
  let lines = 0;
  let collectedAt = performance.now();
  return () => {
    // Avoids reading the clock a million times.
    if (++lines % 1000 !== 0 || performance.now() - collectedAt < millisecondsBetweenCollections) return;
    collect ??= runInNewContext('gc');
    collect?.();
    collectedAt = performance.now();
  };
}
