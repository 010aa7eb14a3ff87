// Runs Koa with the minimum that a server has to do before it may acknowledge a call: it appends the request's body to FILE and syncs the
// file. Requests that arrive during a sync share the next one.
import { open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import Koa from 'koa';
import { listen } from './listen.ts';

const file = await open(process.env['FILE'] ?? '', 'a');
let waiting: Buffer[] = [];
let synced = Promise.resolve();

async function sync(): Promise<void> {
  // The sync of an earlier request has included the body of this request.
  if (waiting.length === 0) return;
  const bodies = waiting;
  waiting = [];
  await file.appendFile(Buffer.concat(bodies));
  await file.datasync();
}

const app = new Koa();
app.use(async (ctx) => {
  waiting.push(await buffer(ctx.req));
  synced = synced.then(sync);
  await synced;
  ctx.status = 202;
  ctx.body = {};
});
listen(app.callback());
