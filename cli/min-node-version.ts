/** The oldest Node.js version that the bundled undici supports. */
export const minNodeVersion = { major: 22, minor: 19 };
