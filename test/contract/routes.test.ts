import { expect } from 'chai';
import type { Route } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';

describe('a route', () => {
  it('returns no secret to GET, whose responses are compressed, and kept by the console', () => {
    const secrets = Object.entries<Route>(routes).filter(([, { secret }]) => secret !== undefined);
    expect(secrets.map(([name]) => name)).to.include('createApiKey');
    for (const [name, { method }] of secrets) expect(method, name).not.to.equal('GET');
  });
});
