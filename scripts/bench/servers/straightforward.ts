// Implements the place endpoint as a first version would: one query after another, with knex. It checks as much as the core about the key,
// its creator, the campaign and the request ID, but less of the body.
import { hash, randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import knex from 'knex';
import Koa from 'koa';
import { instant } from '../../../core/domain/instant.ts';
import { listen } from './listen.ts';

const url = process.env['DATABASE_URL'] ?? '';
const isSqlite = url.startsWith('sqlite:');
const db = isSqlite
  ? knex({ client: 'sqlite3', connection: { filename: url.slice('sqlite:'.length) }, useNullAsDefault: true })
  : knex({ client: 'pg', connection: url });
// By default, knex uses only one connection to SQLite.
if (isSqlite) for (const pragma of ['synchronous = FULL', 'busy_timeout = 5000', 'foreign_keys = ON']) await db.raw(`PRAGMA ${pragma}`);

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
  const response = { requestId, contactId: placed?.contact_id ?? contactId, campaignId: campaign.id, state: 'queued' };
  ctx.body = { ...response, placedAt: new Date(now).toISOString() };
});
listen(app.callback());
