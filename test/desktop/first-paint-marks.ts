/** In the order in which they are reached. */
export const stages = ['main script', 'Electron ready', 'window', 'page parsed', 'window visible', 'sign-in form'] as const;
/** Instants in epoch milliseconds. */
export type Marks = Record<(typeof stages)[number], number>;
