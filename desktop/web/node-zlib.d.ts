/** In the browser build, crc32.ts replaces this module. */
declare module 'node:zlib' {
  export function crc32(text: string): number;
}
