import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CallkeyError, Interrupted } from '../client/errors.ts';
import type { Context } from '../context.ts';

/** No key is longer; what is may be a whole file that was piped in by mistake. */
const longestInput = 4_096;

/** Asks for a key without showing it, or reads it from a pipe. */
export function readKeyInput({ streams: { stdin, stderr } }: Context): Promise<string> {
  return stdin.isTTY ? promptHidden(stdin, stderr) : readPiped(stdin);
}

function promptHidden(stdin: NodeJS.ReadStream, stderr: NodeJS.WriteStream): Promise<string> {
  stderr.write('API key (it is not shown): ');
  // Readline edits the line, as people are used to; what it would show goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true, historySize: 0 });
  return new Promise((resolve, reject) => {
    lines.once('line', resolve);
    lines.once('SIGINT', () => reject(new Interrupted('SIGINT', 'Nothing was stored.')));
    lines.once('close', () => reject(new CallkeyError('usage', 'No key was given.')));
  })
    .finally(() => {
      lines.close();
      stderr.write('\n');
    })
    .then((line) => String(line).trim());
}

async function readPiped(stdin: NodeJS.ReadStream): Promise<string> {
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > longestInput) throw new CallkeyError('usage', 'Standard input is too long for an API key.');
  }
  if (text.trim() === '') throw new CallkeyError('usage', 'No key is on standard input. Pipe it in: callkey key set < FILE');
  return text.trim();
}
