import type { Scope } from './budget.ts';
import type { Cores } from './cores.ts';
import type { Figure } from './figures.ts';
import type { Grown, Lists } from './growth.ts';
import type { OtherLoad } from './load-guard.ts';
import type { Machine } from './machine.ts';
import type { Row } from './workloads.ts';

/** All of a full run. */
export type Results = {
  at: string;
  commit: string;
  machine: Machine;
  rounds: number;
  /** The most for half a minute, in processors. */
  otherLoad: OtherLoad;
  /** How long each part has taken. */
  minutes: Record<string, number>;
  rows: Row[];
  figures: Figure[];
  budget: Scope[];
  cores: Cores[];
  grown: Grown[];
  lists: Lists[];
};
