import Application from 'koa/lib/application.js';
import type { Logger } from 'pino';
import type { Ports } from '../domain/ports.ts';
import { consoleMethods, consoleRoutes } from '../http/console-routes.ts';
import { clientAddress } from '../http/middleware/client-address.ts';
import type { Context, HttpDeps, ObserveRefusals, State } from '../http/middleware/context.ts';
import { waitForStrangerTurn } from '../http/middleware/event-loop.ts';
import { closeWhileDraining, type ObserveRequest, requestId, requestMetrics, requireHost } from '../http/middleware/every-request.ts';
import { notFound, requireReadablePath } from '../http/middleware/paths.ts';
import { problems } from '../http/middleware/responses.ts';
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

/**
 * Lets Koa watch for the end of a response only if Koa writes the response. Watching takes an eighth of the time for a refused key, and
 * only reports broken connections.
 */
class App extends Application<State> {
  override handleRequest(ctx: Context, run: (ctx: Context) => Promise<void>): Promise<void> {
    const { res } = ctx;
    res.statusCode = 404;
    const handled = run(ctx);
    return handled.then(
      () => {
        if (ctx.respond === false) return undefined;
        // Keep the status, because Koa sets it to 404 again.
        const { statusCode } = res;
        return super.handleRequest(ctx, async () => {
          res.statusCode = statusCode;
        });
      },
      () => super.handleRequest(ctx, () => handled),
    );
  }
}

/** Creates the public listener's application. Each middleware handles its own requests and passes on the rest. */
export function createApp(deps: AppDeps): App {
  const { ports, log } = deps;
  const app = new App();
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
    .use(requestId())
    .use(requestMetrics(deps.observeRequest, log))
    .use(closeWhileDraining(deps.isDraining))
    .use(problems(deps.refusals))
    .use(requireHost)
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
