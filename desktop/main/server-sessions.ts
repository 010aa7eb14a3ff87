import { failed } from '../core-answers.ts';
import type { Send } from '../core-channels.ts';
import type { RememberedServer } from '../ipc.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import type { SessionStore } from './session-store.ts';
import type { SettingsFile } from './settings.ts';

type Connection = { client: CoreClient; staysSignedIn: boolean };

/** The servers that the user has signed in to, and the session that each has. The one used last is the current one. */
export class ServerSessions {
  readonly #settings: SettingsFile;
  readonly #store: SessionStore;
  readonly #connections = new Map<string, Connection>();
  #restored: Promise<void> | null = null;

  constructor(settings: SettingsFile, store: SessionStore) {
    this.#settings = settings;
    this.#store = store;
  }

  /** Continues the stored sessions. */
  restore(): Promise<void> {
    this.#restored ??= this.#store.read().then((stored) => {
      for (const { server, cookies } of stored) this.#connections.set(server, { client: coreClient(server, cookies), staysSignedIn: true });
    });
    return this.#restored;
  }

  /** Empty at the first start. */
  get current(): { address: string; email: string } {
    return this.#settings.current.servers[0] ?? { address: '', email: '' };
  }

  /** Null while nobody is signed in to the current server. */
  get client(): CoreClient | null {
    return this.#connections.get(this.current.address)?.client ?? null;
  }

  readonly send: Send = async (request) => this.client?.send(request) ?? failed({ kind: 'session-ended' });

  list(): RememberedServer[] {
    return this.#settings.current.servers.map((server) => ({ ...server, isSignedIn: this.#connections.has(server.address) }));
  }

  /** @param keepSignedIn null keeps the last choice */
  async add(client: CoreClient, email: string, keepSignedIn: boolean | null): Promise<void> {
    const address = client.server;
    await this.restore();
    const before = this.#connections.get(address);
    this.#connections.set(address, { client, staysSignedIn: keepSignedIn ?? before?.staysSignedIn ?? false });
    await Promise.all([before?.client.close(), this.#putFirst({ address, email }), this.#storeSessions()]);
  }

  /** Makes another server the current one. Ignores a server that the user has never signed in to: the page names it. */
  async select(address: string): Promise<void> {
    const found = this.#settings.current.servers.find((server) => server.address === address);
    if (found) await this.#putFirst(found);
  }

  /** @returns the client of the session, to end it at the server; null without one */
  async end(address: string): Promise<CoreClient | null> {
    await this.restore();
    const connection = this.#connections.get(address);
    this.#connections.delete(address);
    await this.#storeSessions();
    return connection?.client ?? null;
  }

  /** As `end`, and forgets address and e-mail. */
  async forget(address: string): Promise<CoreClient | null> {
    const servers = this.#settings.current.servers.filter((server) => server.address !== address);
    const [client] = await Promise.all([this.end(address), this.#settings.change({ servers })]);
    return client;
  }

  #putFirst(first: { address: string; email: string }): Promise<void> {
    const others = this.#settings.current.servers.filter(({ address }) => address !== first.address);
    return this.#settings.change({ servers: [first, ...others] });
  }

  /** A failure must not stop the user from signing in or out. */
  async #storeSessions(): Promise<void> {
    const kept = [...this.#connections.values()].filter(({ staysSignedIn }) => staysSignedIn);
    await this.#store.write(kept.map(({ client }) => ({ server: client.server, cookies: client.cookies() }))).catch(() => undefined);
  }
}
