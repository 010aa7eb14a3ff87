/** Replaces the `zlib.crc32` of Node.js in the contract's key-value.ts: CRC-32 (ISO-HDLC) of an ASCII text. */
export function crc32(text: string): number {
  let register = 0xffff_ffff;
  for (const character of text) {
    register ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) register = (register >>> 1) ^ (register & 1 ? 0xedb8_8320 : 0);
  }
  return (register ^ 0xffff_ffff) >>> 0;
}
