import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import type { Ports } from './domain/ports.ts';
import { clientAddress } from './http/client-address.ts';
import type { OuterStep, State } from './http/context.ts';
import { onDemand } from './http/on-demand.ts';
import { problems } from './http/problems.ts';
import { closeWhileDraining, type ObserveRequest, requestMetrics } from './http/request-metrics.ts';
import { useRoutes } from './http/routes.ts';

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

/** The public listener: the outer steps, and within them the key-authenticated endpoints, or Koa's onion with all else. */
export function createApp(deps: AppDeps): RequestListener {
  const app = new Koa<State>();
  app.silent = true;
  // Only what goes wrong outside the steps below comes here, such as a connection that breaks while an answer is written.
  const undelivered = (err: unknown) => deps.log.debug({ err }, 'answer not delivered');
  app.on('error', undelivered);

  const observed = requestMetrics(deps.observeRequest, deps.log);
  const drained = closeWhileDraining(deps.isDraining);
  const answered = problems(deps.log);
  const around: OuterStep = (exchange, next) => observed(exchange, () => drained(exchange, () => answered(exchange, next)));

  app.use(around);
  useRoutes(app, { ports: deps.ports, dialerSecrets: deps.dialerSecrets, ...clientAddress(deps.trustedProxies) }, deps.sessionSecrets);
  return onDemand(deps.ports, (exchange, next) => around(exchange, next).catch(undelivered), app.callback());
}
