import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listIfExists, readIfExists, writeDurably } from '../../cli/durable-file.ts';
import { freshDirectory } from '../support/databases.ts';

const codeOf = (doing: Promise<unknown>) => doing.catch((error) => error.code);

describe('a file that is written durably', () => {
  it('replaces what was there, and leaves nothing beside it', async () => {
    const folder = join(freshDirectory(), 'new', 'folder');
    for (const text of ['old', 'new']) await writeDurably(join(folder, 'file'), text);
    expect([readFileSync(join(folder, 'file'), 'utf8'), readdirSync(folder)]).to.deep.equal(['new', ['file']]);
  });

  it('that cannot take its place leaves nothing behind, and says why', async () => {
    const folder = freshDirectory();
    mkdirSync(join(folder, 'file', 'full'), { recursive: true });
    expect(await codeOf(writeDurably(join(folder, 'file'), 'text'))).to.be.oneOf(['EISDIR', 'ENOTEMPTY', 'EEXIST']);
    expect(readdirSync(folder)).to.deep.equal(['file']);
  });
});

describe('what may be missing', () => {
  it('reads as nothing where it is', async () => {
    const folder = freshDirectory();
    expect([await readIfExists(join(folder, 'none')), await listIfExists(join(folder, 'none'))]).to.deep.equal([undefined, []]);
  });

  it('is an error where it is there and cannot be read', async () => {
    const folder = freshDirectory();
    expect(await codeOf(readIfExists(folder))).to.equal('EISDIR');
  });
});
