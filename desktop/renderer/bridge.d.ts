import type { Bridge } from '../ipc.ts';

declare global {
  interface Window {
    /** The preload exposes it. */
    readonly callkey: Bridge;
  }
}
