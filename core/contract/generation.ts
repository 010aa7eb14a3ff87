/**
 * Answers of the session routes name the generation of this contract, so that a console can tell a core that is too old or too new for it
 * from one that is broken. It goes up when a console of before could not work with the routes any more.
 */
export const generationHeader = 'Callkey-Contract';
export const generation = 1;
