import { webBridge } from './bridge.ts';

// The screens use `window.callkey` when they load, so this module must be loaded first.
Object.defineProperty(window, 'callkey', { value: Object.freeze(webBridge()) });
