import { expect } from 'chai';
import { readConfig } from '../../core/server/start/config.ts';
import { adminOn } from '../support/commands.ts';

describe('admin dialer secret', () => {
  const { admin, json } = adminOn('sqlite:/nowhere/callkey.db');
  const environment = { DIALER: 'webhook', DIALER_URL: 'https://calls.example/' };

  it('creates a secret that the core accepts, without a database', async () => {
    const { secret } = await json('dialer', 'secret');
    expect(readConfig({ ...environment, DIALER_SECRETS: secret }).dialerSecrets).to.deep.equal([secret]);
  });

  it('prints only the secret, and generates a new secret each time', async () => {
    const answers = [await admin(['dialer', 'secret']), await admin(['dialer', 'secret'])].map(({ stdout }) => stdout);
    for (const answer of answers) expect(answer).to.match(/^whsec_[A-Za-z0-9+/]{43}=\n$/);
    expect(answers[0]).not.to.equal(answers[1]);
  });
});
