import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { limits } from '#contract/limits.ts';
import { type Validated, validate } from '#contract/validate.ts';
import { Problem } from '../../domain/problem.ts';
import type { Context } from './context.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });
const jsonMediaType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i;
/** As they came. */
const keptChunks = 32;
/** A body can be wrong in thousands of places. The answer names the first ones. */
const reportedErrors = 50;

/**
 * Reads and checks a JSON body.
 *
 * @throws Problem `unsupported-media-type`, `too-large`, `malformed-request` or `invalid`
 */
export function readBody<Schema extends z.ZodType>(ctx: Context, schema: Schema, mostBytes: number): Promise<z.output<Schema>> {
  return readValidBody(ctx, (input) => validate(schema, input), mostBytes);
}

/** {@link readBody} with another check than a schema's. */
export async function readValidBody<Data>(
  { req }: Context,
  validateInput: (input: unknown) => Validated<Data>,
  mostBytes: number,
): Promise<Data> {
  const { headers } = req;
  if (!jsonMediaType.test(headers['content-type'] ?? '')) {
    throw new Problem('unsupported-media-type', 'Send UTF-8 JSON with Content-Type: application/json.');
  }
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new Problem('unsupported-media-type', 'Send the body without Content-Encoding.');
  }
  const bytes = await readBytes(req, mostBytes);
  if (bytes.length > limits.strangerBodyBytes) await turnOfLarge();
  return dataOf(validateInput(parse(bytes)));
}

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Large bodies are parsed one in a turn of the event loop, which takes up to 10 ms for thousands of unknown fields: small ones pass
 * a flood of them.
 */
function turnOfLarge(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** Checks bytes that are to be JSON. @throws Problem `malformed-request` or `invalid` */
export function readJson<Schema extends z.ZodType>(bytes: Buffer, schema: Schema): z.output<Schema> {
  return dataOf(validate(schema, parse(bytes)));
}

/** Checks a query. @throws Problem `malformed-request` */
export function readQuery<Schema extends z.ZodType>(ctx: Context, schema: Schema): z.output<Schema> {
  // An empty parameter counts as left out.
  const given = Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== ''));
  const validated = validate(schema, given);
  if (validated.ok) return validated.data;
  const [first] = validated.errors;
  throw new Problem('malformed-request', `Invalid query${first?.path ? ` at ${first.path}` : ''}: ${first?.message ?? ''}`);
}

/** A body as it came, within the limit. @throws Problem `too-large` or `malformed-request` */
export function readBytes(req: IncomingMessage, mostBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const end = (cause?: Error) => reject(new Problem('malformed-request', 'The request body is incomplete.', { cause }));
    // A client that hung up before this sends no further event.
    if (req.destroyed) return end();
    let chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.length;
      // The rest is read and dropped: a client that still sends would not read the answer.
      if (size <= mostBytes) {
        chunks.push(chunk);
        // Many small ones take many times their bytes.
        if (chunks.length === keptChunks) chunks = [Buffer.concat(chunks)];
        return;
      }
      chunks = [];
      reject(new Problem('too-large', `The body must be at most ${mostBytes} bytes.`));
    });
    req.on('end', () => resolve(Buffer.concat(chunks)));
    req.on('error', end);
  });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new Problem('malformed-request', "The body isn't valid JSON in UTF-8.");
  }
}

function dataOf<Data>(validated: Validated<Data>): Data {
  if (validated.ok) return validated.data;
  const [first] = validated.errors;
  throw new Problem('invalid', `Invalid body${first?.path ? ` at ${first.path}` : ''}: ${first?.message ?? ''}`, {
    errors: validated.errors.slice(0, reportedErrors),
  });
}
