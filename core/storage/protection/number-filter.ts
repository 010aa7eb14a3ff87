/** With 12 bits per number, about one in a hundred numbers that aren't in the set seem to be in it. */
const bitsPerNumber = 12;
const bitsSet = 6;
/** All bits of a number are in one block, which is as long as a cache line of the processor. */
const wordsPerBlock = 16;

/** A set of numbers that may also seem to contain other numbers: a blocked Bloom filter (Putze, Sanders and Singler, 2007). */
export type NumberFilter = { add(phone: string): void; mayHave(phone: string): boolean; count(): number; capacity: number };

export function numberFilter(capacity: number): NumberFilter {
  const blocks = Math.ceil((capacity * bitsPerNumber) / (wordsPerBlock * 32));
  const words = new Int32Array(blocks * wordsPerBlock);
  let count = 0;
  const firstWord = (hash: number) => Math.floor((hash / 2 ** 32) * blocks) * wordsPerBlock;
  return {
    capacity,
    count: () => count,
    add(phone) {
      count++;
      const hash = toHash(phone);
      const first = firstWord(hash);
      for (let n = 0, bits = next(hash); n < bitsSet; n++, bits = next(bits)) {
        const word = first + (bits >>> 28);
        words[word] = (words[word] ?? 0) | (1 << (bits >>> 23));
      }
    },
    mayHave(phone) {
      const hash = toHash(phone);
      const first = firstWord(hash);
      for (let n = 0, bits = next(hash); n < bitsSet; n++, bits = next(bits)) {
        if (((words[first + (bits >>> 28)] ?? 0) & (1 << (bits >>> 23))) === 0) return false;
      }
      return true;
    },
  };
}

/** FNV-1a, followed by the last step of MurmurHash3, because the first bits of FNV-1a hardly depend on the last digits. */
function toHash(phone: string): number {
  let hash = 0x811c9dc5;
  for (let n = 0; n < phone.length; n++) hash = Math.imul(hash ^ phone.charCodeAt(n), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A linear congruential generator. Only its high bits are used, because the low ones aren't random enough. */
function next(bits: number): number {
  return Math.imul(bits, 1_664_525) + 1_013_904_223;
}
