import { webBridge } from './bridge.ts';

// The screens look for it when they load, so this module comes before them.
Object.defineProperty(window, 'callkey', { value: Object.freeze(webBridge()) });
