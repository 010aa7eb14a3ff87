export { CallkeyClient } from './callkey-client.ts';
export { CallkeyError, type ErrorKind, notCallableCodes } from './errors.ts';
export type { Call, CallReference, CancelledCall, ClientOptions, PlacedCall, RequestOptions, RetryPolicy } from './types.ts';
