import type { Bridge } from '../../desktop/ipc.ts';

declare global {
  interface Window {
    /** What the preload exposes to the page. */
    readonly callkey: Bridge;
  }
}
