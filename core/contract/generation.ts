/**
 * Sent in responses about the session: the generation of this contract. It tells a console whether a core is too old, too new, or broken.
 * Increase it when older consoles can no longer use the routes.
 */
export const generationHeader = 'Callkey-Contract';
export const generation = 1;
