import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { hashPictures, pictureFolder, pictures } from '../support/pictures.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe("the pages' pictures", () => {
  it('show the screens as they are now (npm run screenshots)', async () => {
    expect(JSON.parse(readFileSync(join(pictureFolder, 'sources.json'), 'utf8'))).to.deep.equal(await hashPictures());
  });

  it('exist in light and dark, and each is on a page', () => {
    const files = globSync('*.png', { cwd: pictureFolder });
    expect(files).to.have.members(Object.keys(pictures).flatMap((name) => [`${name}-light.png`, `${name}-dark.png`]));
    const shown = ['README.md', 'desktop/for-administrators.md'].map((page) => readFileSync(join(root, page), 'utf8')).join('');
    expect(files.filter((file) => !shown.includes(`screenshots/${file}`))).to.deep.equal([]);
  });
});
