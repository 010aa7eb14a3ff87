import type { Case } from '../run.ts';
import { clock } from './clock.ts';
import { dialingCases } from './dialing.ts';
import { failoverCases } from './failover.ts';
import { fileCases } from './files.ts';
import { keyCases } from './keys.ts';
import { outageCases } from './outages.ts';
import { patroni } from './patroni.ts';
import { strangersCases } from './strangers.ts';

export const cases: readonly Case[] = [
  ...outageCases,
  ...fileCases,
  ...failoverCases,
  patroni,
  clock,
  ...dialingCases,
  ...keyCases,
  ...strangersCases,
];
