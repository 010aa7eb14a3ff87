/** In the order in which they're reached. */
export const stages = ['main script', 'Electron ready', 'window', 'page parsed', 'window visible', 'sign-in form'] as const;
/** Times in epoch milliseconds. */
export type Marks = Record<(typeof stages)[number], number>;
