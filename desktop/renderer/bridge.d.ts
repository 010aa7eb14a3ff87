import type { Bridge } from '../ipc.ts';

declare global {
  interface Window {
    /** What the preload exposes. */
    readonly callkey: Bridge;
  }
}
