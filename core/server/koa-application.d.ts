/** Koa's types don't include the method that handles a request. */
declare module 'koa/lib/application.js' {
  import Koa from 'koa';

  export default class Application<State> extends Koa<State> {
    handleRequest(ctx: Koa.ParameterizedContext<State>, run: (ctx: Koa.ParameterizedContext<State>) => Promise<void>): Promise<void>;
  }
}
