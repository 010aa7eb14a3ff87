/** In the browser build, crc32.ts replaces it. */
declare module 'node:zlib' {
  export function crc32(text: string): number;
}
