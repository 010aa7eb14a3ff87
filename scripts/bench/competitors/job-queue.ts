// Runs a job queue for PostgreSQL behind Koa: pg-boss or graphile-worker, as QUEUE says. It checks the key against the core's table, and adds
// one durable job per request, which the same request ID never adds twice.
import { hash, randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { makeWorkerUtils } from 'graphile-worker';
import Koa from 'koa';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { listen } from '../servers/listen.ts';

type Add = (id: string, job: object) => Promise<unknown>;

const connectionString = process.env['DATABASE_URL'] ?? '';
const pool = new pg.Pool({ connectionString, max: 10 });
const task = 'place-call';

const queues: Readonly<Record<string, () => Promise<Add>>> = {
  async 'pg-boss'() {
    // Its maintenance would only slow it down here.
    const boss = new PgBoss({ connectionString, max: 10, supervise: false, schedule: false });
    await boss.start();
    await boss.createQueue(task);
    return (id, job) => boss.send(task, job, { id });
  },
  async 'graphile-worker'() {
    const utils = await makeWorkerUtils({ pgPool: pool });
    await utils.migrate();
    return (id, job) => utils.addJob(task, job, { jobKey: id, jobKeyMode: 'unsafe_dedupe' });
  },
};

const add = await queues[process.env['QUEUE'] ?? '']?.();
if (!add) throw new Error('Set QUEUE to pg-boss or graphile-worker.');
const findKey = { name: 'key', text: 'SELECT id FROM api_keys WHERE digest = $1 AND (expires_at IS NULL OR expires_at > $2)' };

/** Makes a UUID, because pg-boss takes nothing else. */
function toId(campaignId: string, requestId: string): string {
  return hash('sha256', `${campaignId} ${requestId}`, 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5');
}

const app = new Koa();
app.use(async (ctx) => {
  const body = (await json(ctx.req)) as { requestId?: string; contact: { phone: string; name?: string }; variables?: object };
  const digest = hash('sha256', ctx.get('X-API-Key'), 'hex');
  const [key] = (await pool.query({ ...findKey, values: [digest, Date.now()] })).rows;
  if (!key) return ctx.throw(401);
  const campaignId = ctx.path.split('/')[4] ?? '';
  const { requestId = randomUUID() } = body;
  const contactId = toId(campaignId, requestId);
  await add(contactId, { ...body, requestId, campaignId, apiKeyId: key.id });
  ctx.status = 202;
  ctx.body = { requestId, contactId, campaignId, state: 'queued', placedAt: new Date().toISOString() };
});
listen(app.callback());
