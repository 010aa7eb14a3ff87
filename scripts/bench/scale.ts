/** How much is measured. Times are in seconds. */
export type Scale = {
  rounds: number;
  /** Of one load. */
  seconds: number;
  warmUp: number;
  /** Keys, and as many calls, in the tables: the smallest, the one whose lists are measured, and the largest. */
  sizes: readonly [number, number, number];
  /** Starts of a program. */
  starts: number;
};

export const scales = {
  full: { rounds: 9, seconds: 2, warmUp: 4, sizes: [1_000, 1_000_000, 10_000_000], starts: 11 },
  rows: { rounds: 3, seconds: 2, warmUp: 4, sizes: [0, 0, 0], starts: 0 },
  poolers: { rounds: 5, seconds: 2, warmUp: 2, sizes: [0, 0, 0], starts: 0 },
  rehearsal: { rounds: 2, seconds: 1, warmUp: 1, sizes: [1_000, 5_000, 20_000], starts: 2 },
} as const satisfies Record<string, Scale>;
