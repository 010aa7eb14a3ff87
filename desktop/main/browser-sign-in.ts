import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { shell } from 'electron';
import type { SessionView } from '#contract/console/session.ts';
import { coreRequest, failed, type Send } from '../core-requests.ts';
import type { Result } from '../ipc.ts';

/** The core waits just as long for the browser to come back and for the user to confirm. */
const maxWaitMs = 12 * 60_000;

const pages = {
  done: 'You’re signed in. You can close this tab and go back to the Callkey app.',
  wrong: 'This sign-in is no longer valid. Go back to the Callkey app and try again.',
};

/**
 * Signs in through the system's browser (RFC 8252): the core's page there sends a code to a port of this computer, and only this process
 * has the verifier that the code needs. A code sent by anyone else doesn't end the wait.
 *
 * @param url the core's page that starts the sign-in
 * @param onLink called with the link that was opened, because the system may have no browser, or open nothing without saying so
 */
export async function signInThroughBrowser(
  send: Send,
  url: string,
  signal: AbortSignal,
  onLink: (link: string) => void,
): Promise<Result<SessionView>> {
  const verifier = randomBytes(32).toString('base64url');
  const ended = AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)]);
  const { promise, resolve } = Promise.withResolvers<Result<SessionView>>();
  let exchange: Promise<Result<SessionView>> = Promise.resolve(cancelledSignIn);
  const server = createServer((request, response) => {
    void receive(request, response);
  });

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const code = readCode(request);
    if (code !== null) exchange = send(coreRequest('signInFromApp', { code, verifier }));
    const result = code === null ? null : await exchange;
    response.writeHead(result?.ok ? 200 : 400, pageHeaders).end(result?.ok ? pages.done : pages.wrong);
    // Also resolves if the response can't be sent, because the user may have closed the tab.
    if (result?.ok) finished(response, () => resolve(result));
  }

  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening', { signal: ended });
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const start = new URL(url);
    start.searchParams.set('port', String(port));
    start.searchParams.set('challenge', hash('sha256', verifier, 'base64url'));
    onLink(start.href);
    await shell.openExternal(start.href).catch(() => undefined);
    if (!ended.aborted) await Promise.race([promise, once(ended, 'abort')]);
    // After a cancellation, wait for a session that's just starting, because the caller has to end it.
    return await Promise.race([promise, exchange.then((result) => (result.ok ? result : cancelledSignIn))]);
  } catch {
    return ended.aborted ? cancelledSignIn : noPort;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const pageHeaders = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store', Connection: 'close' };

function readCode({ method, url = '' }: IncomingMessage): string | null {
  return method === 'GET' ? (/^\/\?code=([A-Za-z0-9_-]{43})$/.exec(url)?.[1] ?? null) : null;
}

export const cancelledSignIn = failed({ kind: 'session-ended' });
const noPort = failed({ kind: 'unreachable', detail: 'The app couldn’t listen for your browser’s response. Try again.' });
