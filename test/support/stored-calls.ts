import type { CallRow } from '../../core/storage/engine/tables.ts';
import type { DirectAccess, Tenants } from './tenants.ts';

/** Stores calls in the tenants' campaign, without a request. Each call's ID is also its request ID. By default, the calls are due now. */
export async function insertCalls({ ports, storage }: DirectAccess, tenants: Tenants, ids: readonly string[], more: Partial<CallRow> = {}) {
  const now = ports.clock.now();
  const rows = ids.map((id) => ({
    ...{ contact_id: id, request_id: id, campaign_id: tenants.campaign.id, account_id: tenants.account.id, api_key_id: 'key' },
    ...{ state: 'queued' as const, phone: '+493012345678', placed_at: now, due_at: now, ...more },
  }));
  await storage.database.write.batchInsert('calls', rows, 50);
}
