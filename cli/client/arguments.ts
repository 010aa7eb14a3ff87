// Checks arguments from JavaScript callers, which no compiler has checked.
import { inspect } from 'node:util';
import { z } from 'zod';
import { isRequestId } from '#contract/calls/calls.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { isIdentifier } from '#contract/text/text.ts';
import { CallkeyError } from './errors.ts';
import type { Call, CallReference, ClientOptions } from './types.ts';

const count = z.int().min(1).max(10_000).optional();
const optionsSchema = z.looseObject({
  server: z.string(),
  keyValue: z.string().refine(isKeyValue, "This isn't a valid API key. Copy the whole key again."),
  connections: count,
  timeout: z.number().min(1).max(3_600_000).optional(),
  retry: z.looseObject({ attempts: count }).optional(),
  userAgent: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'Must be plain ASCII text, as HTTP requires.')
    .optional(),
});

/** @throws CallkeyError `usage`, without repeating any value */
export function checkOptions(options: ClientOptions): void {
  const { error } = optionsSchema.safeParse(options);
  if (error) throw new CallkeyError('usage', `Invalid CallkeyClient options.\n${z.prettifyError(error)}`);
}

/** Refuses any text that isn't an ID, because it could change the request path. @throws CallkeyError `usage` */
export function checkId(of: 'campaign' | 'contact' | 'request', id: unknown): void {
  const isOne = of === 'request' ? isRequestId : isIdentifier;
  if (typeof id !== 'string' || !isOne(id)) throw new CallkeyError('usage', `${inspect(id)} isn't a valid ${of} ID.`);
}

/** @throws CallkeyError `usage` */
export function checkReference(call: CallReference): void {
  if (isObject(call) && 'contactId' in call) checkId('contact', call.contactId);
  else checkId('request', isObject(call) && 'requestId' in call ? call.requestId : undefined);
}

/** @returns the request body. @throws CallkeyError `usage` */
export function toRequestBody(call: Call): string {
  checkId('request', isObject(call) ? call.requestId : undefined);
  try {
    return JSON.stringify(call);
  } catch (cause) {
    throw new CallkeyError('usage', "The call can't be converted to JSON: it contains a circular reference or a BigInt.", { cause });
  }
}

/** @throws CallkeyError `usage` */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new CallkeyError('usage', 'The signal must be an AbortSignal.');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
