// Runs better-auth's API-key plugin on SQLite, behind Koa. It only checks whether the key in the header is valid.
// The plugin's own rate limit is off.
import { DatabaseSync } from 'node:sqlite';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import Koa from 'koa';
import { listen } from '../servers/listen.ts';

const database = new DatabaseSync(process.env['DATABASE_FILE'] ?? ':memory:');
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
const auth = betterAuth({
  database,
  secret: 'a secret for the bench of at least 32 characters',
  baseURL: 'http://127.0.0.1',
  logger: { disabled: true },
  emailAndPassword: { enabled: true },
  plugins: [apiKey({ rateLimit: { enabled: false } })],
});
await (await getMigrations(auth.options)).runMigrations();
const { user } = await auth.api.signUpEmail({ body: { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery staple' } });
const { key } = await auth.api.createApiKey({ body: { userId: user.id, name: 'Bench' } });

const app = new Koa();
app.use(async (ctx) => {
  const { valid } = await auth.api.verifyApiKey({ body: { key: ctx.get('X-API-Key') } });
  ctx.status = valid ? 200 : 401;
  ctx.body = { valid };
});
listen(app.callback(), { key });
