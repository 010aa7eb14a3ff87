/** Every number that a form, a schema and a table have to agree on. */
export const limits = {
  /** Code points in the name of an API key. */
  apiKeyName: 200,
  /** The most recently created keys of a scope that a list shows. */
  listedApiKeys: 500,
  /** Rows on a page of the key list. */
  pageSizes: [10, 20, 50],
  /** API keys that one request revokes. */
  revokedApiKeys: 100,
  /** Days in a chart, today included. */
  chartDays: 30,
  /** In days: so long before its end, a key is said to end soon. */
  endsSoon: 30,
  /** Days in a chart of a range of days that the viewer chose: the newest ones of a longer range. */
  chosenChartDays: 366,
  /** So many matches of a list are counted. */
  countedMatches: 10_000,
  /** Rows that an export reads at a time. */
  exportPage: 1_000,
  /** Bytes in a request body, and in one that anyone can send: a sign-in, or an outcome before its signature is checked. */
  bodyBytes: 64 * 1024,
  strangerBodyBytes: 8 * 1024,
  /** Characters in an identifier that the service makes. */
  identifier: 64,
  /** Characters in an integrator's own identifier of a call. */
  requestId: 128,
  /** Code points in the name of a contact, a user, an account, a partner or a campaign. */
  name: 200,
  /** Characters in an e-mail address (RFC 5321 §4.5.3.1.3, less the angle brackets). */
  email: 254,
  /** Code points in a password: OWASP ASVS 5.0 6.2.1 and 6.2.9. */
  passwordMin: 8,
  passwordMax: 128,
  /** Code points in what a provider says of a call. */
  detail: 500,
  /** Rows on a page of calls or of activity. */
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
