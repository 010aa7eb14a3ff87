import { failed } from '../core-answers.ts';
import type { RememberedServer } from '../ipc.ts';
import type { Send } from '../route-requests.ts';
import { deviceCookies, type SessionCookies } from './cookie-jar.ts';
import { type CoreClient, coreClient } from './core-client.ts';
import type { SessionStore } from './session-store.ts';
import type { SettingsFile } from './settings.ts';

type Connection = { client: CoreClient; staysSignedIn: boolean };

/** Holds the servers that the user has signed in to, with their sessions. The last one used is the current one. */
export class ServerSessions {
  readonly #settings: SettingsFile;
  readonly #store: SessionStore;
  readonly #connections = new Map<string, Connection>();
  /** The cookies by which servers recognize this device. Contains only servers without a session. */
  readonly #devices = new Map<string, { cookies: SessionCookies; isStored: boolean }>();
  #restored: Promise<void> | null = null;

  constructor(settings: SettingsFile, store: SessionStore) {
    this.#settings = settings;
    this.#store = store;
  }

  /** Resumes the stored sessions. */
  restore(): Promise<void> {
    this.#restored ??= this.#store.read().then((stored) => {
      for (const { server, cookies } of stored) {
        const device = deviceCookies(cookies);
        const hasSession = Object.keys(cookies).length > Object.keys(device).length;
        if (hasSession) this.#connections.set(server, { client: coreClient(server, cookies), staysSignedIn: true });
        else this.#devices.set(server, { cookies: device, isStored: true });
      }
    });
    return this.#restored;
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
  async deviceAt(address: string): Promise<SessionCookies> {
    await this.restore();
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
    await this.restore();
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
    await this.restore();
    const connection = this.#connections.get(address);
    this.#connections.delete(address);
    if (connection) {
      const cookies = deviceCookies(connection.client.cookies());
      this.#devices.set(address, { cookies, isStored: connection.staysSignedIn });
    }
    await this.#storeSessions();
    return connection?.client ?? null;
  }

  /** Like `end`, but also forgets the server and email address. */
  async forget(address: string): Promise<CoreClient | null> {
    const servers = this.#settings.current.servers.filter((server) => server.address !== address);
    const [client] = await Promise.all([this.end(address), this.#settings.change({ servers })]);
    this.#devices.delete(address);
    await this.#storeSessions();
    return client;
  }

  #putFirst(first: { address: string; email: string }): Promise<void> {
    const otherServers = this.#settings.current.servers.filter(({ address }) => address !== first.address);
    return this.#settings.change({ servers: [first, ...otherServers] });
  }

  /** Stores the sessions. A failure must not prevent the user from signing in or out. */
  async #storeSessions(): Promise<void> {
    const connections = [...this.#connections.values()].filter(({ staysSignedIn }) => staysSignedIn);
    const sessions = connections.map(({ client }) => ({ server: client.server, cookies: client.cookies() }));
    const devices = [...this.#devices].filter(([, { isStored }]) => isStored).map(([server, { cookies }]) => ({ server, cookies }));
    await this.#store.write([...sessions, ...devices]).catch(() => undefined);
  }
}
