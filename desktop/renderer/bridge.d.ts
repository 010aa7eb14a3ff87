import type { Bridge } from '../ipc.ts';

declare global {
  interface Window {
    /** Provided by the preload script, or by desktop/web in a browser. */
    readonly callkey: Bridge;
  }
}
