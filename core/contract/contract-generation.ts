/**
 * The generation of this contract, sent in responses about the session. From it, a console can tell whether a core is too old, too new, or
 * broken. Increase it when older consoles can no longer use the routes.
 */
export const generationHeader = 'Callkey-Contract';
export const generation = 1;
