import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { describeOutdatedNode, newestNode } from '#contract/node-release.ts';

describe('the Node.js release', () => {
  it('is the same in the packages and in the image', () => {
    const { devDependencies, engines } = JSON.parse(readFileSync('package.json', 'utf8'));
    const images = readFileSync('core/deploy/Dockerfile', 'utf8').matchAll(/node:([\d.]+)-/g);
    expect([devDependencies.node, engines.node, ...new Set([...images].map(([, version]) => version))]).to.deep.equal([
      newestNode,
      `>=${newestNode}`,
      newestNode,
    ]);
  });

  for (const version of ['24.20.9', '24.9.0', '24.0.0-nightly'])
    it(`${version} is outdated`, () => {
      expect(describeOutdatedNode(version)).to.equal(`Node.js ${version} lacks security fixes. Update it to ${newestNode} or later.`);
    });

  for (const version of [newestNode, '24.21.1', '24.100.0', '22.19.0', '26.0.0'])
    it(`${version} isn't outdated`, () => {
      expect(describeOutdatedNode(version)).to.equal(null);
    });
});
