import Koa from 'koa';
import type { Logger } from 'pino';
import type { Ports } from '../domain/ports.ts';
import { consoleMethods, consoleRoutes } from '../http/console-routes.ts';
import { clientAddress } from '../http/middleware/client-address.ts';
import type { HttpDeps, ObserveRefusals, State } from '../http/middleware/context.ts';
import { waitForStrangerTurn } from '../http/middleware/event-loop.ts';
import { countRequests, everyRequest, type ObserveRequest } from '../http/middleware/every-request.ts';
import { notFound, requireReadablePath } from '../http/middleware/paths.ts';
import { session } from '../http/middleware/session.ts';
import { onDemand, onDemandMethods } from '../http/on-demand.ts';
import { outcomeMethods, outcomes } from '../http/outcomes.ts';
import { type WebConsole, webConsole, webConsoleMethods } from '../http/web-console.ts';

type AppDeps = {
  ports: Ports;
  log: Logger;
  observeRequest: ObserveRequest;
  isDraining: () => boolean;
  /** Newest first. The newest secret signs, and all of them are accepted. */
  sessionSecrets: readonly string[];
  trustedProxies: readonly string[];
  dialerSecrets: readonly string[];
  refusals: ObserveRefusals;
  /** The kind of dialer, for the console. */
  dialer: HttpDeps['dialer'];
  publicUrl: string;
  onProviderSignIn: HttpDeps['onProviderSignIn'];
  onCode: HttpDeps['onCode'];
  /** If undefined, the console isn't served. */
  webConsole: WebConsole | undefined;
  version: string;
};

/** Creates the public listener's application. Each middleware handles its own requests and passes on the rest. */
export function createApp(deps: AppDeps): Koa<State> {
  const { ports, log } = deps;
  const app = new Koa<State>();
  const httpDeps = {
    ports,
    refusals: deps.refusals,
    dialer: deps.dialer,
    version: deps.version,
    hasReference: deps.webConsole !== undefined,
    publicUrl: deps.publicUrl,
    sessionSecrets: deps.sessionSecrets,
    onProviderSignIn: deps.onProviderSignIn,
    onCode: deps.onCode,
    isDraining: deps.isDraining,
    ...clientAddress(deps.trustedProxies, deps.refusals.onForwardingIgnored),
  };
  const inConsole = consoleRoutes(httpDeps);
  const listMethods = (path: string) => [
    ...onDemandMethods(path),
    ...outcomeMethods(path),
    ...webConsoleMethods(deps.webConsole, path),
    ...consoleMethods(inConsole, path),
  ];

  app.silent = true;
  // Problems are handled below, so any error here is from a connection that broke while its response was being written.
  app.on('error', (err) => log.debug({ err }, 'response not delivered'));

  app
    .use(everyRequest({ ...deps.refusals, isDraining: deps.isDraining, onAnswered: countRequests(deps.observeRequest, log) }))
    .use(onDemand(httpDeps))
    .use(async (ctx, next) => {
      await waitForStrangerTurn(httpDeps.getClientAddress(ctx));
      await next();
    })
    .use(requireReadablePath)
    .use(outcomes(ports, deps.dialerSecrets))
    .use(webConsole(deps.webConsole))
    .use(session(app, httpDeps))
    .use(inConsole.routes())
    .use(notFound(listMethods));
  return app;
}
