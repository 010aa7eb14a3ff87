import { expect } from 'chai';
import { restoreTlsChecks, tlsChecksWarning } from '#contract/tls-checks.ts';

describe('certificate verification', () => {
  for (const [value, wasOff] of [
    ['0', true],
    ['1', false],
    [undefined, false],
  ] as const) {
    it(`stays on with NODE_TLS_REJECT_UNAUTHORIZED=${value}`, () => {
      const environment = { NODE_TLS_REJECT_UNAUTHORIZED: value, PATH: '/bin' };
      expect(restoreTlsChecks(environment)).to.equal(wasOff);
      expect(tlsChecksWarning).to.contain('NODE_EXTRA_CA_CERTS');
      expect(environment).to.deep.equal({ PATH: '/bin' });
    });
  }
});
