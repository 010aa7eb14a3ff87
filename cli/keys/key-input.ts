import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { findKeyValues } from '#contract/key-value.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { Interrupted } from '../terminal/interrupt.ts';

/** Longer than any key. A longer input may be a whole file that was piped in by mistake. */
const maxInputLength = 4_096;

/** Prompts for a key without showing it, or reads it from a pipe. */
export function readKeyInput({ streams: { stdin, stderr } }: Context): Promise<string> {
  return stdin.isTTY ? promptHidden(stdin, stderr) : readPiped(stdin);
}

function promptHidden(stdin: NodeJS.ReadStream, stderr: NodeJS.WriteStream): Promise<string> {
  stderr.write('API key (input is hidden): ');
  // Readline edits the line as users expect, and its echo goes to a stream that drops it.
  const noEcho = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: noEcho, terminal: true, historySize: 0 });
  return new Promise<string>((resolve, reject) => {
    let text = '';
    lines.on('line', (line) => {
      text += `${line}\n`;
      // A pasted key may have a line break in it. The rest of the paste is already in the next lines, or waits for Enter.
      setImmediate(() => {
        if (lines.line === '' || findKeyValues(text).length > 0) resolve(text);
      });
    });
    lines.once('SIGINT', () => reject(new Interrupted('SIGINT', 'Nothing was stored.')));
    lines.once('close', () =>
      reject(new CallkeyError('usage', 'No key was entered. Run callkey key set again and paste the key at the prompt.')),
    );
  }).finally(() => {
    lines.close();
    stderr.write('\n');
  });
}

async function readPiped(stdin: NodeJS.ReadStream): Promise<string> {
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > maxInputLength)
      throw new CallkeyError('usage', 'Standard input is too long for an API key. Pipe in only the key: callkey key set < FILE');
  }
  if (text.trim() === '') throw new CallkeyError('usage', 'Standard input was empty. Pipe the key in: callkey key set < FILE');
  return text;
}
