// What everything is compared with: Koa, and nothing else.
import Koa from 'koa';
import { listen } from './listen.ts';

const app = new Koa();
app.use((ctx) => {
  ctx.body = { hello: 'world' };
});
listen(app.callback());
