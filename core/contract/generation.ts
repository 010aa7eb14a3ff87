/**
 * Responses about the session name the generation of this contract. With it, a console can tell a core that's too old or too new from one
 * that's broken. Increase it when an older console couldn't use the routes any more.
 */
export const generationHeader = 'Callkey-Contract';
export const generation = 1;
