/** In the browser's build, crc32.ts is in its place. */
declare module 'node:zlib' {
  export function crc32(text: string): number;
}
