import { expect } from 'chai';
import type { Route } from '#contract/route.ts';
import { routes } from '#contract/routes.ts';

describe('a route', () => {
  it('never returns a secret from GET, because the console caches GET responses and the core compresses them', () => {
    const secrets = Object.entries<Route>(routes).filter(([, { secret }]) => secret !== undefined);
    expect(secrets.map(([name]) => name)).to.include('createApiKey');
    for (const [name, { method }] of secrets) expect(method, name).not.to.equal('GET');
  });
});
