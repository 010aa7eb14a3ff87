// Runs bare Koa, the server that everything is compared with.
import Koa from 'koa';
import { listen } from './listen.ts';

const app = new Koa();
app.use((ctx) => {
  ctx.body = { hello: 'world' };
});
listen(app.callback());
