import { testCreation } from './shards/creation.ts';
import { testFailingNodes } from './shards/failing-nodes.ts';
import { sharedCluster } from './shards/shared.ts';
import { testTwoShards } from './shards/two-shards.ts';

describe('shards', function () {
  this.timeout(180_000);
  const its = sharedCluster();

  testCreation(its);
  describe('in a database with two shards', () => testTwoShards(its));
  describe('on nodes that fail', () => testFailingNodes(its));
});
