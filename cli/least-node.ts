/** The oldest Node.js that the bundled undici runs on. */
export const leastNode = { major: 22, minor: 19 };
