import type { SessionView } from '#contract/console/session.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';

/** A partner, account or campaign that can have rules. */
export type Tenancy = { kind: ProtectionScope; id: string; name: string };

/** Returns the partner or account that the viewer works in; null for staff who haven't selected one. */
export function ownTenancy({ viewer: { account, partner }, tenancy }: SessionView): Tenancy | null {
  if (account) return { kind: 'account', ...account };
  if (partner) return { kind: 'partner', ...partner };
  return tenancy;
}
