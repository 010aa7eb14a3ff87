import { expect } from 'chai';
import { canonicalNetworks, isInNetworks, type Network, parseNetwork, toLargeNetwork, toNetworks } from '#contract/text/networks.ts';

const networks = (...texts: string[]) => texts.map(parseNetwork).filter((network): network is Network => typeof network !== 'string');
const includes = (network: string, address: string) => isInNetworks(networks(network), address);

describe('a network', () => {
  it('is written in CIDR notation, in canonical form and only once', () => {
    const spellings = ['192.0.2.7', '192.0.2.7/32', '::ffff:192.0.2.7', '::ffff:c000:207/128', '0:0:0:0:0:FFFF:192.0.2.7'];
    expect(canonicalNetworks(spellings)).to.deep.equal(['192.0.2.7/32']);
    expect(canonicalNetworks(['2001:DB8:0:0:0:0:0:1', '2001:db8::0.0.0.1/128', '2001:0db8::0001'])).to.deep.equal(['2001:db8::1/128']);
    expect(canonicalNetworks(['::/0', '0.0.0.0/0', '1::', '::1', '1:0:0:2:0:0:0:3', 'fe80::/10', '::ffff:10.0.0.0/104'])).to.deep.equal([
      '::/0',
      '0.0.0.0/0',
      '1::/128',
      '::1/128',
      '1:0:0:2::3/128',
      'fe80::/10',
      '10.0.0.0/8',
    ]);
  });

  it("contains an address however it's written", () => {
    for (const address of ['2001:db8:0:0::1', '2001:DB8::1', '2001:db8::0.0.0.1', '2001:0db8:0000::0001', '2001:db8::1%eth0'])
      expect(includes('2001:db8::/64', address), address).to.equal(true);
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::FFFF:a01:203', '0:0:0:0:0:ffff:10.1.2.3'])
      expect(includes('10.0.0.0/8', address), address).to.equal(true);
  });

  it('contains exactly the addresses from its first to its last', () => {
    for (const [network, inside, outside] of [
      ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0']],
      ['192.0.2.128/25', ['192.0.2.128', '192.0.2.255'], ['192.0.2.127', '192.0.3.0']],
      ['192.0.2.7/32', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8']],
      ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '::1']],
      ['::/0', ['::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['0.0.0.0', '::ffff:1.2.3.4']],
      ['2001:db8::/33', ['2001:db8:7fff:ffff::1'], ['2001:db8:8000::', '2001:db7:ffff::']],
      ['2001:db8::/127', ['2001:db8::', '2001:db8::1'], ['2001:db8::2']],
    ] as const) {
      for (const address of inside) expect(includes(network, address), `${address} in ${network}`).to.equal(true);
      for (const address of outside) expect(includes(network, address), `${address} in ${network}`).to.equal(false);
    }
  });

  it("doesn't contain anything that isn't an address", () => {
    for (const text of [
      '',
      'unknown',
      '1.2.3',
      '01.2.3.4',
      '1.2.3.256',
      '1.2.3.4:80',
      ':::',
      '1::2::3',
      '1:2:3:4:5:6:7:8:9',
      '12345::',
      '::1.2.3',
    ])
      expect(isInNetworks(networks('0.0.0.0/0', '::/0'), text), text).to.equal(false);
  });

  it('is refused if it is invalid, with a message that says what to enter', () => {
    const general = 'Must be an IP address or a network, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32.';
    for (const text of ['', 'x', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/8/8', '/8', 'fe80::1%eth0', '1.2.3.4:80', '[::1]'])
      expect(parseNetwork(text), text).to.equal(general);
    expect(parseNetwork('10.0.0.0/33')).to.equal('The prefix length must be at most 32.');
    expect(parseNetwork('::/129')).to.equal('The prefix length must be at most 128.');
    expect(parseNetwork('10.0.0.7/8')).to.equal(
      'The address has bits set beyond its prefix length. Enter 10.0.0.0/8 for the network, or 10.0.0.7/32 for the address alone.',
    );
    expect(parseNetwork('::ffff:0:0/95')).to.equal(
      'The prefix length of an IPv4-mapped network must be from 96 to 128. Enter the IPv4 network instead, such as 10.0.0.0/8.',
    );
  });
});

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
