import { createServer, type RequestListener } from 'node:http';

/** Listens on a free port, and logs the address in a core's format, along with the fields in `more`. */
export function listen(listener: RequestListener, more: object = {}): void {
  const server = createServer(listener).listen(0, '127.0.0.1', () => {
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    process.stdout.write(`${JSON.stringify({ msg: 'listening', url: `http://127.0.0.1:${port}`, ...more })}\n`);
  });
}
