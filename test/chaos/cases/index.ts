import type { Case } from '../run.ts';
import { clients } from './clients.ts';
import { clock } from './clock.ts';
import { deletion } from './deletion.ts';
import { diskFull } from './disk-full.ts';
import { failover, hosts, lagging } from './failover.ts';
import { deleted, harms, moved } from './file.ts';
import { fsync } from './fsync.ts';
import { hostile } from './hostile.ts';
import { kills, killsDeduplicated } from './kills.ts';
import { lanes } from './lanes.ts';
import { lock } from './lock.ts';
import { patroni } from './patroni.ts';
import { freeze, restart, terminate } from './postgres.ts';
import { flood, races } from './races.ts';
import { revoke } from './revoke.ts';
import { signIns } from './sign-ins.ts';
import { stopped } from './stopped.ts';
import { strangersCases } from './strangers.ts';

export const cases: readonly Case[] = [
  lock,
  diskFull,
  fsync,
  moved,
  deleted,
  ...harms,
  restart,
  freeze,
  terminate,
  failover,
  lagging,
  hosts,
  patroni,
  clock,
  kills,
  killsDeduplicated,
  stopped,
  races,
  flood,
  lanes,
  revoke,
  deletion,
  clients,
  hostile,
  signIns,
  ...strangersCases,
];
