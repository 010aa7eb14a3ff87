/** A set of line numbers: a bit a line, since a file may have millions. */
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

/** What a FirstLines knows a text by: whole numbers of up to 53 and 32 bits, which two texts of a file do not share. */
export type Mark = { high: number; low: number };

/**
 * The first line that each mark is on. An open hash table of 16 bytes a slot, at most three of four taken: a Map of texts takes five times
 * as much, and for a million lines that is all the memory that the command may use.
 */
export class FirstLines {
  #bits = 10;
  #size = 0;
  #high = new Float64Array(1 << this.#bits);
  #low = new Uint32Array(1 << this.#bits);
  /** A slot with 0 is free: lines begin at 1. */
  #lines = new Uint32Array(1 << this.#bits);

  /** Keeps the line unless an earlier one has the mark. @returns the earlier line */
  add({ high, low }: Mark, line: number): number | undefined {
    const slot = this.#slotOf(high, low);
    const earlier = this.#lines[slot];
    if (earlier) return earlier;
    this.#fill(slot, high, low, line);
    if (++this.#size > (1 << this.#bits) * 0.75) this.#grow();
    return undefined;
  }

  /** Where the mark is, or belongs. */
  #slotOf(high: number, low: number): number {
    const last = (1 << this.#bits) - 1;
    // Fibonacci hashing: the upper bits of the product depend on all bits of the mark.
    let slot = Math.imul(high ^ low, 0x9e37_79b1) >>> (32 - this.#bits);
    while (this.#lines[slot] && (this.#high[slot] !== high || this.#low[slot] !== low)) slot = (slot + 1) & last;
    return slot;
  }

  #fill(slot: number, high: number, low: number, line: number): void {
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#lines[slot] = line;
  }

  #grow(): void {
    const [high, low, lines] = [this.#high, this.#low, this.#lines];
    this.#bits++;
    this.#high = new Float64Array(1 << this.#bits);
    this.#low = new Uint32Array(1 << this.#bits);
    this.#lines = new Uint32Array(1 << this.#bits);
    for (let slot = 0; slot < lines.length; slot++) {
      const [line = 0, itsHigh = 0, itsLow = 0] = [lines[slot], high[slot], low[slot]];
      if (line > 0) this.#fill(this.#slotOf(itsHigh, itsLow), itsHigh, itsLow, line);
    }
  }
}
