export const limits = {
  /** Code points in the name of an API key. */
  apiKeyName: 200,
  /** A list shows up to this many of a scope's newest keys. */
  listedApiKeys: 500,
  /** Rows on a page of the key list. */
  pageSizes: [10, 20, 50],
  /** API keys that one request can revoke. */
  revokedApiKeys: 100,
  /** Addresses and networks that one key can be limited to, and characters in one of them. */
  networks: 50,
  network: 64,
  /** Recent addresses shown in a key's details. */
  shownAddresses: 20,
  /** The highest daily call limit that a key can have. */
  callsPerDay: 10_000_000,
  /** Code points in the note about why a key is revoked. */
  revokeNote: 200,
  /** Days in a chart, including today. */
  chartDays: 30,
  /** A key that expires within this many days is marked in the console and in responses. */
  expiresSoonDays: 30,
  /** A user who hasn't signed in for this many days may have left, although their keys still work. */
  awayDays: 90,
  /** Days in a chart of a custom range. A longer range is cut to its last days. */
  maxChartDays: 366,
  /** Matches in a list are counted up to this number. */
  countedMatches: 10_000,
  /** Rows that an export reads at a time. */
  exportPage: 1_000,
  /** Bytes in a request body. The lower limit is for bodies that anyone can send, such as a sign-in. */
  bodyBytes: 64 * 1024,
  strangerBodyBytes: 8 * 1024,
  /** Characters in an ID that the core generates. */
  identifier: 64,
  /** Characters in an integrator's own ID for a call. */
  requestId: 128,
  /** Code points in the name of a contact, user, account, partner or campaign. */
  name: 200,
  /** Characters in an email address (RFC 5321 §4.5.3.1.3, without the angle brackets). */
  email: 254,
  /** Code points in a password (OWASP ASVS 5.0 6.2.1 and 6.2.9). */
  passwordMin: 8,
  passwordMax: 128,
  /** Code points in a provider's detail about a call. */
  detail: 500,
  /** Rows on a page of calls or activity. */
  page: 50,
  /** Rows on a page of accounts, campaigns, users or a user's keys. Most scopes have fewer. */
  directoryPage: 500,
  variables: 50,
  variableName: 64,
  variableValue: 1_000,
  /** Tenancies that one search returns. */
  tenancies: 50,
  /** Characters in a search. */
  search: 200,
} as const;
