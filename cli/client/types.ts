// Written out, not inferred from the contract's schemas: what the package declares needs no other package. callkey-client.ts compares them.

/** One call to place. Instants are RFC 3339 in UTC, such as `2026-11-21T09:00:00.000Z`. */
export type Call = {
  /**
   * Your own name for this call, unique in its campaign: 1 to 128 of `A-Z a-z 0-9 . _ ~ : -`. Derive it from what the call is for
   * (`order-4711`), so that a program that crashes and starts again sends the same one. Required: without it, a retry could place a second call.
   */
  requestId: string;
  contact: {
    /** E.164, such as `+493012345678`. */
    phone: string;
    name?: string | undefined;
    /** An IANA name, such as `Europe/Berlin`. */
    timeZone?: string | undefined;
  };
  /** For the conversation: at most 50. */
  variables?: Record<string, string> | undefined;
  /** The call is not dialed before. */
  notBefore?: string | undefined;
  /** A call that is not dialed by then lapses. */
  notAfter?: string | undefined;
};

export type PlacedCall = {
  requestId: string;
  /** The service's name for this call. */
  contactId: string;
  campaignId: string;
  state: 'queued';
  placedAt: string;
  /** This request id had placed this call before. */
  replayed: boolean;
};

/** Either identifier of a call. */
export type CallReference = { contactId: string } | { requestId: string };

export type CancelledCall = {
  requestId: string;
  contactId: string;
  campaignId: string;
  state: 'cancelled';
  cancelledAt: string;
};

export type RetryPolicy = {
  /** How often a request is sent before it fails as `unreachable`: 6 times by default, with at most 8 s of pauses. */
  attempts?: number;
  /** Once it has aborted, nothing is sent again; a request in flight still gets its answer. For a program that is told to end. */
  until?: AbortSignal;
  /** Gets the reason before each pause. */
  onRetry?: (reason: string) => void;
};

export type ClientOptions = {
  /** The core's address: https, or http on this very machine. */
  server: string;
  keyValue: string;
  retry?: RetryPolicy;
  /** How many requests are in flight at once; 8 by default. Others wait for their turn. */
  connections?: number;
  /** Gets each request and answer, phone numbers included, without the key. */
  trace?: (text: string) => void;
  /** Gets the end of a key that ends within 30 days (RFC 3339), with each answer. */
  onKeyEndsSoon?: (expiresAt: string) => void;
  /** What to call the program in the header `User-Agent`. */
  userAgent?: string;
  /** Gets the server's time with each answer, as HTTP writes it. */
  onAnswer?: (answer: { date: string | undefined }) => void;
};

export type RequestOptions = {
  /**
   * Ends the request at once, which then rejects with the signal's reason. The call may have been placed or cancelled nevertheless: repeat the
   * request to know.
   */
  signal?: AbortSignal | undefined;
};
