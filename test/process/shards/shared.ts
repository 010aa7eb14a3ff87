import type { CoreProcess } from '../../support/core.ts';
import { type Cluster, missingCitus, startCluster } from '../../support/postgres-node.ts';
import { skip } from '../../support/suites.ts';
import { createKey, placeCall, signIn } from '../../support/tenants.ts';

/** Starts a cluster before the tests of a suite. All tests of shards share it, because it takes several seconds to start. */
export function sharedCluster() {
  let cluster: Cluster;
  before(async function () {
    const missing = missingCitus();
    if (missing) return skip(this, missing);
    cluster = await startCluster();
  });
  after(() => cluster?.stop());
  return {
    get cluster() {
      return cluster;
    },
  };
}

export type SharedCluster = ReturnType<typeof sharedCluster>;

export async function createPartnerKey({ url }: CoreProcess) {
  const partner = await signIn(url, 'pat@example.com');
  const { id, keyValue } = await createKey(url, partner);
  return { partner, id, key: keyValue };
}

/** @returns the status of the response */
export const place = async ({ url }: CoreProcess, campaignId: string, key: string, requestId: string, phone = '+493012345678') =>
  (await placeCall(url, campaignId, key, { requestId, contact: { phone } })).status;
