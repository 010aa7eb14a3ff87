/** Every path of the public listener. A `:name` segment is a path parameter. */
export const paths = {
  placeCall: '/api/v1/campaigns/:campaignId/contacts/on-demand',
  cancelCallByContact: '/api/v1/campaigns/:campaignId/contacts/on-demand/:contactId',
  cancelCallByRequest: '/api/v1/campaigns/:campaignId/contacts/on-demand/by-request-id/:requestId',

  session: '/console/session',
  sessionTenancy: '/console/session/tenancy',
  password: '/console/password',
  tenancies: '/console/tenancies',
  apiKeys: '/console/api-keys',
  identifyApiKey: '/console/api-keys/identify',
  apiKeyRevocations: '/console/api-keys/revocations',
  apiKey: '/console/api-keys/:id',
  apiKeyRevocation: '/console/api-keys/:id/revocation',
  accounts: '/console/accounts',
  campaigns: '/console/campaigns',
  setup: '/console/setup',
  directoryPartners: '/console/directory/partners',
  directoryPartner: '/console/directory/partners/:id',
  directoryAccounts: '/console/directory/accounts',
  directoryAccount: '/console/directory/accounts/:id',
  directoryCampaigns: '/console/directory/campaigns',
  directoryCampaign: '/console/directory/campaigns/:id',
  calls: '/console/campaigns/:id/calls',
  callsCsv: '/console/campaigns/:id/calls.csv',
  callsSummary: '/console/campaigns/:id/calls/summary',
  allCalls: '/console/calls',
  allCallsCsv: '/console/calls.csv',
  allCallsSummary: '/console/calls/summary',
  call: '/console/campaigns/:id/calls/:contactId',
  users: '/console/users',
  user: '/console/users/:id',
  userDeletion: '/console/users/:id/deletion',
  userPassword: '/console/users/:id/password',
  activity: '/console/activity',
  activityFacets: '/console/activity/facets',
  activityCsv: '/console/activity.csv',
  exports: '/console/exports',

  outcomes: '/dialer/outcomes',
} as const;

type Parameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Parameters<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** Fills in a path's parameters, percent-encoded: `pathTo(paths.apiKey, { id })`. */
export function pathTo<Path extends string>(path: Path, parameters: Record<Parameters<Path>, string>): string {
  const values: Record<string, string> = parameters;
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
}
