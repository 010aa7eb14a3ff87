import type { ProtectionScope } from '#contract/protection/protection.ts';
import { oneOf, text, unwritten, viewFields } from '../../state/address/fields.ts';

export const tabs = ['do-not-call', 'calling-hours', 'numbers'] as const;
export type Tab = (typeof tabs)[number];

export const tabLabels: Readonly<Record<Tab, string>> = {
  'do-not-call': 'Do not call',
  'calling-hours': 'Calling hours',
  numbers: 'Numbers',
};

/**
 * The user's settings on the screen.
 *
 * @property scope the kind and ID of the partner, account or campaign whose rules are shown, such as `account/ID`; empty for the viewer's
 * own
 * @property scopeName the scope's name, once the user has chosen a scope
 */
export type ProtectionView = { tab: Tab; search: string; scope: string; scopeName: string };

export const protectionView = viewFields<ProtectionView>('protection', ['tab'], {
  tab: oneOf(tabs, 'do-not-call'),
  search: text(),
  scope: text(),
  scopeName: unwritten(''),
});

/** A partner, account or campaign that can have rules. */
export type Scope = { kind: ProtectionScope; id: string };

export function readScope(text: string): Scope | null {
  const [, kind, id] = /^(partner|account|campaign)\/(.+)$/.exec(text) ?? [];
  return id !== undefined && (kind === 'partner' || kind === 'account' || kind === 'campaign') ? { kind, id } : null;
}
