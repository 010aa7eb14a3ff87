import { expect } from 'chai';
import { toLargeNetwork, toNetworks } from '../../core/domain/sign-in/throttle.ts';

describe("an address's networks", () => {
  for (const [address, networks, large] of [
    ['192.0.2.130', ['192.0.2.130', '192.0.2/24'], '192.0/16'],
    ['2001:db8:1:203::9', ['20010db800010203/64', '20010db8000102/56', '20010db80001/48'], '20010db8/32'],
    ['::1', ['0000000000000000/64', '00000000000000/56', '000000000000/48'], '00000000/32'],
    ['1:2:3:4:5:6:7:8', ['0001000200030004/64', '00010002000300/56', '000100020003/48'], '00010002/32'],
    // A closed connection has no address.
    ['', ['', '/24'], '/16'],
  ] as const) {
    it(`are ${networks.join(', ')}, each in ${large}`, () => {
      expect([toNetworks(address), toLargeNetwork(address)]).to.deep.equal([networks, large]);
    });
  }
});
