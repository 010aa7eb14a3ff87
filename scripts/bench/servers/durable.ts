// Runs Koa with the minimum that a server has to do before it may acknowledge a call: it appends the request's body to FILE and syncs the
// file. Requests that arrive during a sync share the next one.
import { open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import Koa from 'koa';
import { listen } from './listen.ts';

const file = await open(process.env['FILE'] ?? '', 'a');
let previous = Promise.resolve();
let next: { bodies: Buffer[]; synced: Promise<void> } | undefined;

function append(body: Buffer): Promise<void> {
  if (!next) {
    const bodies: Buffer[] = [];
    const synced = previous.then(async () => {
      next = undefined;
      await file.appendFile(Buffer.concat(bodies));
      await file.datasync();
    });
    next = { bodies, synced };
    previous = synced;
  }
  next.bodies.push(body);
  return next.synced;
}

const app = new Koa();
app.use(async (ctx) => {
  await append(await buffer(ctx.req));
  ctx.status = 202;
  ctx.body = {};
});
listen(app.callback());
