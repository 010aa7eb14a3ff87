import Koa from 'koa';
import type { Logger } from 'pino';
import type { Ports } from './domain/ports.ts';
import type { State } from './http/context.ts';
import { draining, type ObserveRequest, observing } from './http/observing.ts';
import { answeringProblems } from './http/problems.ts';
import { useRoutes } from './http/routes.ts';
import { trustOf } from './http/trust.ts';

export type AppDeps = {
  ports: Ports;
  log: Logger;
  observeRequest: ObserveRequest;
  isDraining: () => boolean;
  /** Newest first: the newest signs, all of them verify. */
  sessionSecrets: readonly string[];
  trustedProxies: readonly string[];
  dialerSecrets: readonly string[];
};

/** The public listener's onion, from the outside in. */
export function createApp(deps: AppDeps): Koa<State> {
  const app = new Koa<State>();
  app.silent = true;
  // Only what goes wrong outside the steps below comes here, such as a connection that breaks while an answer is written.
  app.on('error', (err) => deps.log.debug({ err }, 'answer not delivered'));

  app.use(observing(deps.observeRequest, deps.log));
  app.use(draining(deps.isDraining));
  app.use(answeringProblems(deps.log));
  useRoutes(app, { ports: deps.ports, dialerSecrets: deps.dialerSecrets, ...trustOf(deps.trustedProxies) }, deps.sessionSecrets);
  return app;
}
