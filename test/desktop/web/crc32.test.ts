import { crc32 as crc32OfNode } from 'node:zlib';
import { expect } from 'chai';
import { assert, property, string } from 'fast-check';
import { crc32 } from '../../../desktop/web/crc32.ts';

describe('the checksum of a key value in a browser', () => {
  it('is the same as in Node.js', () => {
    assert(property(string({ unit: 'binary-ascii' }), (text) => expect(crc32(text)).to.equal(crc32OfNode(text)) !== undefined));
  });
});
