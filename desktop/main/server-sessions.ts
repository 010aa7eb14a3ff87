import { coreRequest, failed, type Send } from '../core-requests.ts';
import type { RememberedServer, Result, ServerMark } from '../ipc.ts';
import { deviceCookies, type SessionCookies } from './cookie-jar.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import { log } from './log.ts';
import type { SessionStore } from './session-store.ts';
import type { SettingsFile } from './settings.ts';

type Connection = { client: CoreClient; staysSignedIn: boolean };

/** Ends a session on the server. The app has already forgotten the session, so the user can sign in again without waiting. */
export async function endAtServer(client: CoreClient | null): Promise<Result<null>> {
  if (!client) return failed({ kind: 'session-ended' });
  const answer = await client.send(coreRequest('signOut', {}));
  await client.close();
  return answer;
}

/** Holds the servers that the user has signed in to, with their sessions. The last one used is the current one. */
export class ServerSessions {
  readonly #settings: SettingsFile;
  readonly #store: SessionStore;
  readonly #connections = new Map<string, Connection>();
  /** The cookies by which servers recognize this device. Contains only servers without a session. */
  readonly #devices = new Map<string, { cookies: SessionCookies; isStored: boolean }>();
  /** Resolves when the stored sessions have been resumed. The system may first ask the user for a password. */
  readonly restored: Promise<void>;

  constructor(settings: SettingsFile, store: SessionStore) {
    this.#settings = settings;
    this.#store = store;
    this.restored = this.#restore();
  }

  async #restore(): Promise<void> {
    const sessions = await this.#store.read();
    const { signedOut = [] } = this.#settings.current;
    // The user may have signed in while the sessions couldn't be read.
    const isChanged = signedOut.length + this.#connections.size > 0;
    for (const { server, cookies } of sessions) {
      const device = deviceCookies(cookies);
      const hasSession = Object.keys(cookies).length > Object.keys(device).length;
      if (signedOut.includes(server) || this.#connections.has(server)) {
        if (hasSession) void endAtServer(coreClient(server, cookies));
      } else if (hasSession) this.#connections.set(server, { client: coreClient(server, cookies), staysSignedIn: true });
      else this.#devices.set(server, { cookies: device, isStored: true });
    }
    if (!this.#store.persistence.possible || !isChanged) return;
    await this.#storeSessions();
    await this.#settings.change({ signedOut: undefined });
  }

  /** Returns the current server; empty at the first start. */
  get current(): { address: string; email: string } {
    return this.#settings.current.servers[0] ?? { address: '', email: '' };
  }

  /** Returns the current server's client; null while no one is signed in to it. */
  get client(): CoreClient | null {
    return this.#connections.get(this.current.address)?.client ?? null;
  }

  /** Returns the cookies to send when signing in. */
  deviceAt(address: string): SessionCookies {
    const connection = this.#connections.get(address);
    return connection ? deviceCookies(connection.client.cookies()) : (this.#devices.get(address)?.cookies ?? {});
  }

  readonly send: Send = async (request) => this.client?.send(request) ?? failed({ kind: 'session-ended' });

  list(): RememberedServer[] {
    return this.#settings.current.servers.map((server) => ({ ...server, isSignedIn: this.#connections.has(server.address) }));
  }

  /** Adds a session. @param keepSignedIn null keeps the last choice */
  async add(client: CoreClient, email: string, keepSignedIn: boolean | null): Promise<void> {
    const address = client.server;
    log('signed in', { server: address });
    const before = this.#connections.get(address);
    this.#connections.set(address, { client, staysSignedIn: keepSignedIn ?? before?.staysSignedIn ?? false });
    this.#devices.delete(address);
    await Promise.all([before?.client.close(), this.#putFirst({ address, email }), this.#storeSessions()]);
  }

  /** Makes another server the current one. Ignores a server that the user has never signed in to, because the name comes from the page. */
  async select(address: string): Promise<void> {
    const match = this.#settings.current.servers.find((server) => server.address === address);
    if (match) await this.#putFirst(match);
  }

  /** Ends a session in the app. @returns its client, to end the session on the server as well; null if there was no session */
  async end(address: string): Promise<CoreClient | null> {
    const connection = this.#connections.get(address);
    this.#connections.delete(address);
    if (connection) {
      log('signed out', { server: address });
      const cookies = deviceCookies(connection.client.cookies());
      this.#devices.set(address, { cookies, isStored: connection.staysSignedIn });
    }
    // Otherwise, a stored session that can't be read now would be resumed later.
    const { signedOut = [] } = this.#settings.current;
    if (this.#store.hasUnreadFile) await this.#settings.change({ signedOut: [...new Set([...signedOut, address])] });
    await this.#storeSessions();
    return connection?.client ?? null;
  }

  /** Ends all sessions, here and on their servers. */
  async endAll(): Promise<void> {
    const clients = await Promise.all([...this.#connections.keys()].map((address) => this.end(address)));
    await Promise.all(clients.map(endAtServer));
  }

  /** Like `end`, but also forgets the server and email address. */
  async forget(address: string): Promise<CoreClient | null> {
    const servers = this.#settings.current.servers.filter((server) => server.address !== address);
    const [client] = await Promise.all([this.end(address), this.#settings.change({ servers })]);
    this.#devices.delete(address);
    await this.#storeSessions();
    return client;
  }

  mark({ address, label, color }: ServerMark & { address: string }): Promise<void> {
    const servers = this.#settings.current.servers.map((server) => (server.address === address ? { ...server, label, color } : server));
    return this.#settings.change({ servers });
  }

  #putFirst(first: { address: string; email: string }): Promise<void> {
    const { servers } = this.#settings.current;
    const before = servers.find(({ address }) => address === first.address);
    const otherServers = servers.filter(({ address }) => address !== first.address);
    return this.#settings.change({ servers: [{ ...before, ...first }, ...otherServers] });
  }

  async #storeSessions(): Promise<unknown> {
    const connections = [...this.#connections.values()].filter(({ staysSignedIn }) => staysSignedIn);
    const sessions = connections.map(({ client }) => ({ server: client.server, cookies: client.cookies() }));
    const devices = [...this.#devices].filter(([, { isStored }]) => isStored).map(([server, { cookies }]) => ({ server, cookies }));
    return this.#store.write([...sessions, ...devices]);
  }
}
