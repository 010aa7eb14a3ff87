import type { Bridge } from '../ipc.ts';

declare global {
  interface Window {
    /** The preload exposes it, or desktop/web in a browser. */
    readonly callkey: Bridge;
  }
}
