// Written out instead of inferred from the contract's schemas, so that the package's types need no other package. callkey-client.ts checks
// that the two match.

/** A call to place. Times are RFC 3339 in UTC, such as `2026-11-21T09:00:00.000Z`. */
export type Call = {
  /**
   * Your own ID for this call, unique in its campaign: 1 to 128 of `A-Z a-z 0-9 . _ ~ : -`. Derive it from the purpose of the call
   * (`order-4711`), so that a program that crashes and restarts sends the same ID. It's required, because without it, a retry could place a
   * second call.
   */
  requestId: string;
  contact: {
    /** E.164, such as `+493012345678`. */
    phone: string;
    name?: string | undefined;
    /** An IANA name, such as `Europe/Berlin`. */
    timeZone?: string | undefined;
  };
  /** Variables for the conversation; at most 50. */
  variables?: Record<string, string> | undefined;
  /** The call isn't dialed before this time. */
  notBefore?: string | undefined;
  /** If the call isn't dialed by this time, it lapses. */
  notAfter?: string | undefined;
};

export type PlacedCall = {
  requestId: string;
  /** The service's identifier for this call. */
  contactId: string;
  campaignId: string;
  state: 'queued';
  placedAt: string;
  /** Set if calling hours delay the call, which isn't dialed before this time. */
  heldUntil?: string | undefined;
  /** Whether the call had already been placed with this request ID. */
  replayed: boolean;
};

/** A call's contact ID or request ID. */
export type CallReference = { contactId: string } | { requestId: string };

export type CancelledCall = {
  requestId: string;
  contactId: string;
  campaignId: string;
  state: 'cancelled';
  cancelledAt: string;
};

export type RetryPolicy = {
  /** The number of attempts before a request fails as `unreachable`: 6 by default, with at most 8 s of delays. */
  attempts?: number;
  /** For programs that are about to exit: once it aborts, nothing is sent again, but a request in flight still gets its response. */
  until?: AbortSignal;
  /** Receives the reason before each delay. */
  onRetry?: (reason: string) => void;
};

export type ClientOptions = {
  /** The core's address: https, or http on the local machine. */
  server: string;
  keyValue: string;
  /** Sentences for the error if the server rejects the key: where your program got it from, and how to replace it. */
  keySource?: string;
  retry?: RetryPolicy;
  /** How long each attempt may take until its response is complete, in milliseconds: 10,000 by default. */
  timeout?: number;
  /** The maximum number of requests in flight, 8 by default. Others wait. */
  connections?: number;
  /** Receives each request and response, including phone numbers but without the key. */
  trace?: (text: string) => void;
  /** Called with each response if the key expires within 30 days, with its expiration time (RFC 3339). */
  onKeyEndsSoon?: (expiresAt: string) => void;
  /** The name of your program for the `User-Agent` header: `callkey-client/VERSION node/VERSION` by default. */
  userAgent?: string;
  /** Called with each response, with the server's time in HTTP format. */
  onAnswer?: (answer: { date: string | undefined }) => void;
};

export type RequestOptions = {
  /**
   * Stops the request immediately. The promise then rejects with the signal's reason. The call may still have been placed or cancelled:
   * repeat the request to find out.
   */
  signal?: AbortSignal | undefined;
};
