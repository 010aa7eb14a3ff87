import { consoleRoutes } from './routes/console.ts';
import { dialerRoutes } from './routes/dialer.ts';
import { onDemandRoutes } from './routes/on-demand.ts';

/** Every route of the public listener. The router, validation, OpenAPI and the console's client use this table. */
export const routes = { ...onDemandRoutes, ...consoleRoutes, ...dialerRoutes };
