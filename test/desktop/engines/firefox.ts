import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { freshDirectory } from '../../support/databases.ts';
import { type Driver, startProgram } from './driver.ts';

type Answer = { id: number | null; type: string; message?: string; result?: unknown };

/** Starts Firefox with one page, and controls it over WebDriver BiDi. */
export async function startFirefox(executablePath: string): Promise<Driver> {
  const program = await startProgram(executablePath, ['--headless', '--remote-debugging-port=0', '--profile', freshDirectory()]);
  const address = await new Promise<string>((resolve) => {
    createInterface({ input: program.stderr }).on('line', (line) => {
      const [, url] = line.match(/^WebDriver BiDi listening on (ws:.*)$/) ?? [];
      if (url !== undefined) resolve(`${url}/session`);
    });
  });
  const socket = new WebSocket(address);
  await once(socket, 'open');
  const waiting: ((answer: Answer) => void)[] = [];
  socket.addEventListener('message', ({ data }) => {
    const answer: Answer = JSON.parse(String(data));
    if (answer.id !== null) waiting[answer.id]?.(answer);
  });
  const send = async (method: string, params: object): Promise<object> => {
    const answered = new Promise<Answer>((resolve) => {
      socket.send(JSON.stringify({ id: waiting.push(resolve) - 1, method, params }));
    });
    const { message, result } = await answered;
    if (message !== undefined) throw new Error(`${method}: ${message}`);
    return Object(result);
  };

  await send('session.new', { capabilities: {} });
  const tree: { contexts?: { context: string }[] } = await send('browsingContext.getTree', {});
  const context = tree.contexts?.[0]?.context;
  return {
    goTo: async (url) => void (await send('browsingContext.navigate', { context, url, wait: 'complete' })),
    async evaluate(expression) {
      const params = { expression: `(async () => JSON.stringify(await (${expression})))()`, target: { context }, awaitPromise: true };
      const answer: { result?: { value?: string }; exceptionDetails?: { text: string } } = await send('script.evaluate', params);
      if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.text);
      return JSON.parse(answer.result?.value ?? 'null');
    },
    perform: async (actions) => void (await send('input.performActions', { context, actions })),
    resize: async (viewport) => void (await send('browsingContext.setViewport', { context, viewport })),
    async screenshot() {
      const { data }: { data?: string } = await send('browsingContext.captureScreenshot', { context });
      return Buffer.from(data ?? '', 'base64');
    },
    async close() {
      socket.close();
      await program.kill();
    },
  };
}
