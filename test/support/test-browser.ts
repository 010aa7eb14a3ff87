import { type Answer, ask, readCookies } from './http.ts';

/** Follows redirects as a browser does, with cookies for each server, but can stop at any URL. */
export class TestBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Returns the cookies that the browser sends to a server. */
  cookie(url: string): string {
    return [...(this.#cookies.get(new URL(url).origin) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Takes over another browser's cookies, as an attacker would plant them. */
  plant(url: string, cookie: string): void {
    const jar = this.#findJar(url);
    for (const pair of cookie.split('; ')) jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
  }

  async open(url: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('GET', url, undefined, { 'Sec-Fetch-Site': 'none', ...headers });
  }

  async send(method: string, url: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    const cookie = this.cookie(url);
    const answer = await ask(method, url, { headers, ...(cookie === '' ? {} : { cookie }), ...(body && { body }) });
    const jar = this.#findJar(url);
    for (const pair of readCookies(answer).split('; ')) {
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }

  /** Follows redirects until one leads to a URL that starts with `stop`. @returns that URL, which isn't opened */
  async follow(url: string, stop: string): Promise<string> {
    for (let next = url; ; ) {
      if (next.startsWith(stop)) return next;
      const answer = await this.open(next);
      const { location } = answer.headers;
      if (typeof location !== 'string') throw new Error(`${next} returned ${answer.status} ${answer.text}`);
      next = new URL(location, next).href;
    }
  }

  #findJar(url: string): Map<string, string> {
    const { origin } = new URL(url);
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}
