import Koa from 'koa';
import type { Logger } from 'pino';
import { consoleMethods, consoleRoutes } from '../http/console-routes.ts';
import type { HttpDeps, State } from '../http/middleware/context.ts';
import {
  clientAddress,
  countRequests,
  everyRequest,
  notFound,
  outsideConsole,
  requireReadablePath,
} from '../http/middleware/every-request.ts';
import { session } from '../http/middleware/session.ts';
import { networksInTurn } from '../http/middleware/turns.ts';
import { onDemand, onDemandMethods } from '../http/on-demand.ts';
import { outcomeMethods, outcomes } from '../http/outcomes.ts';
import { type WebConsole, webConsole, webConsoleMethods } from '../http/web-console.ts';
import type { Metrics } from './metrics.ts';
import type { Config } from './start/config.ts';

type AppDeps = Pick<HttpDeps, 'ports' | 'refusals' | 'draining' | 'sessionSecrets' | 'version'> & {
  config: { dialer: Pick<Config['dialer'], 'kind'> } & Pick<Config, 'dialerSecrets' | 'publicUrl' | 'trustedProxies'>;
  log: Logger;
  metrics: Pick<Metrics, 'onCode' | 'onIdentityProviderResult' | 'onRequest'>;
  /** If undefined, the console isn't served. */
  webConsole: WebConsole | undefined;
};

/** Creates the public listener's application. Each middleware handles its own requests and passes on the rest. */
export function createApp(deps: AppDeps): Koa<State> {
  const { config, ports, log, metrics, refusals, draining, sessionSecrets, webConsole: files, version } = deps;
  const { publicUrl, dialerSecrets, trustedProxies } = config;
  const app = new Koa<State>();
  const httpDeps: HttpDeps = {
    ...{ ports, refusals, draining, sessionSecrets, version, publicUrl },
    dialer: config.dialer.kind,
    hasReference: files !== undefined,
    onIdentityProviderResult: metrics.onIdentityProviderResult,
    onCode: metrics.onCode,
    ...clientAddress(trustedProxies, refusals.onForwardingIgnored),
  };
  const inConsole = consoleRoutes(httpDeps);
  const listMethods = (path: string) => [
    ...onDemandMethods(path),
    ...outcomeMethods(path),
    ...webConsoleMethods(files, path),
    ...consoleMethods(inConsole, path),
  ];

  app.silent = true;
  // Problems are handled below, so any error here is from a connection that broke while its response was being written.
  app.on('error', (err) => log.debug({ err }, 'response not delivered'));

  app
    .use(everyRequest({ onNotServed: refusals.onNotServed, draining, onAnswered: countRequests(metrics.onRequest, log) }))
    .use(outsideConsole(onDemand(httpDeps)))
    // Everything below waits for its network's turn, even a signed-in user's request, because its session isn't known yet.
    .use(networksInTurn(httpDeps))
    .use(requireReadablePath)
    .use(outsideConsole(outcomes(ports, dialerSecrets)))
    .use(outsideConsole(webConsole(files)))
    .use(session(app, httpDeps))
    .use(inConsole.routes())
    .use(notFound(listMethods));
  return app;
}
