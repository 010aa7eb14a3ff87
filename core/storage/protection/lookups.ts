import type { Knex } from 'knex';
import type { Named } from '#contract/console/common.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import type { DoNotCallEntry, OwningScope, RuleScope } from '../../domain/model.ts';
import type { ProtectionAccess } from '../../domain/ports.ts';
import type { Lane } from '../engine/database.ts';
import { inChunks } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';
import type { DoNotCallRow } from '../engine/tables.ts';
import { isAt } from '../queue/call-stages.ts';

/** Adds the names of the entries' accounts and partners. */
export async function toEntries(read: Knex, rows: readonly DoNotCallRow[]): Promise<DoNotCallEntry[]> {
  const ids = [...new Set(rows.map((row) => row.scope_id))];
  const names: Named[] = [];
  for (const chunk of inChunks(ids)) {
    names.push(...(await read('accounts').whereIn('id', chunk).select('id', 'name')));
    names.push(...(await read('partners').whereIn('id', chunk).select('id', 'name')));
  }
  const nameById = new Map(names.map(({ id, name }) => [id, name]));
  return rows.map((row) => toEntry(row, nameById.get(row.scope_id) ?? ''));
}

function toEntry(row: DoNotCallRow, scopeName: string): DoNotCallEntry {
  const { id, phone, reason, note, source } = row;
  return {
    ...{ id, phone, reason, note, source },
    scope: { kind: row.account_id === null ? 'partner' : 'account', id: row.scope_id, name: scopeName },
    call: row.campaign_id === null || row.contact_id === null ? null : { campaignId: row.campaign_id, contactId: row.contact_id },
    createdBy: row.created_by_id === null ? null : { id: row.created_by_id, name: row.created_by_name ?? '' },
    createdAt: row.created_at,
    endsAt: row.ends_at,
  };
}

/** Counts the calls to these numbers that a provider has or may have. */
export async function countBeingDialed(database: Lane, owner: OwningScope, phones: readonly string[]): Promise<number> {
  const scope = owner.accountId === null ? 'account_id IN (SELECT id FROM accounts WHERE partner_id = ?)' : 'account_id = ?';
  let calls = 0;
  for (const chunk of inChunks(phones)) {
    calls += await sumOfShards(database, async (shard) => {
      const [row] = await shard.query<{ calls: number | string }>(
        `SELECT count(*) AS calls FROM calls
       WHERE state = 'dialing' AND phone IN (${chunk.map(() => '?')}) AND ${isAt('open', 'doubt', 'taken')} AND ${scope}`,
        [...chunk, owner.accountId ?? owner.partnerId],
      );
      return Number(row?.calls ?? 0);
    });
  }
  return calls;
}

type ScopeRow = { id: string; name: string; account_id: string | null; partner_id: string };

/** Finds a partner, account or campaign that the viewer can see. */
export async function findScope(database: Lane, access: ProtectionAccess, kind: ProtectionScope, id: string): Promise<RuleScope | null> {
  const [row] = await database.query<ScopeRow>(scopeSql[kind], [id]);
  if (!row || !isInReach(row, access)) return null;
  return { kind, id: row.id, name: row.name, owner: { accountId: row.account_id, partnerId: row.partner_id } };
}

const scopeSql: Readonly<Record<ProtectionScope, string>> = {
  partner: 'SELECT id, name, NULL AS account_id, id AS partner_id FROM partners WHERE id = ?',
  account: 'SELECT id, name, id AS account_id, partner_id FROM accounts WHERE id = ?',
  campaign: 'SELECT c.id, c.name, a.id AS account_id, a.partner_id FROM campaigns c JOIN accounts a ON a.id = c.account_id WHERE c.id = ?',
};

function isInReach(row: ScopeRow, access: ProtectionAccess): boolean {
  if (access.kind === 'all') return true;
  return access.kind === 'account' ? row.account_id === access.accountId : row.partner_id === access.partnerId;
}

/** The number of accounts that one statement reads. */
const accountBatchSize = 1_000;

/** Returns the account of a scope, or all accounts of its partner. */
export async function* accountsIn({ read }: Lane, { accountId, partnerId }: OwningScope): AsyncGenerator<string> {
  if (accountId !== null) return yield accountId;
  for (let after = ''; ; ) {
    const ids: string[] = await read('accounts')
      .where({ partner_id: partnerId })
      .where('id', '>', after)
      .orderBy('id')
      .limit(accountBatchSize)
      .pluck('id');
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
  }
}
