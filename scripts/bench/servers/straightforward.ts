// Implements the place endpoint as a first version would: one query after another, with knex. It checks as much as the core about the key,
// its creator, the campaign and the request ID, but less of the body.
import { hash, randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import knex from 'knex';
import Koa from 'koa';
import { instant } from '../../../core/domain/instant.ts';
import { parseDatabaseUrl } from '../../../core/storage/engine/database.ts';
import { listen } from './listen.ts';

const location = parseDatabaseUrl(process.env['DATABASE_URL'] ?? '');
if (!location) throw new Error("DATABASE_URL doesn't name a database.");
const pragmas = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON';
const db =
  location.kind === 'postgres'
    ? knex({ client: 'pg', connection: location.url, pool: { min: 0, max: 10 } })
    : knex({
        client: 'sqlite3',
        connection: { filename: location.filename },
        useNullAsDefault: true,
        pool: {
          min: 1,
          max: 1,
          afterCreate: (connection: { exec: (sql: string, done: unknown) => void }, done: unknown) => connection.exec(pragmas, done),
        },
      });

const app = new Koa();
app.use(async (ctx) => {
  const body = (await json(ctx.req)) as { requestId?: string; contact: { phone: string; name?: string }; variables?: object };
  const now = instant(Date.now());
  const key = await db('api_keys')
    .where({ digest: hash('sha256', ctx.get('X-API-Key'), 'hex') })
    .first();
  if (!key || (key.expires_at !== null && key.expires_at < now)) return ctx.throw(401);
  const creator = await db('users').where({ id: key.creator_id }).first();
  const campaign = await db('campaigns')
    .where({ id: ctx.path.split('/')[4] ?? '' })
    .first();
  if (!campaign || campaign.account_id !== creator?.account_id) return ctx.throw(403);

  const contactId = randomUUID();
  const requestId = body.requestId ?? contactId;
  const placed = await db('calls').where({ campaign_id: campaign.id, request_id: requestId }).first();
  if (!placed) {
    await db('calls').insert({
      ...{ contact_id: contactId, request_id: requestId, campaign_id: campaign.id, account_id: campaign.account_id, api_key_id: key.id },
      ...{ state: 'queued', phone: body.contact.phone, name: body.contact.name ?? null, variables: JSON.stringify(body.variables ?? null) },
      ...{ placed_at: now, due_at: now },
    });
  }
  await db('api_keys').where({ id: key.id }).update({ last_used_at: now });
  ctx.status = 202;
  ctx.body = {
    requestId,
    contactId: placed?.contact_id ?? contactId,
    campaignId: campaign.id,
    state: 'queued',
    placedAt: new Date(now).toISOString(),
  };
});
listen(app.callback());
