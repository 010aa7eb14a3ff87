import type { DoNotCallEntryView } from '#contract/protection/do-not-call.ts';

/** Says who must not call the number of an entry. */
export function describeScope({ kind, name }: DoNotCallEntryView['scope']): string {
  return kind === 'partner' ? `${name} and all its accounts` : name;
}

/** Says who added an entry, or that it came from a call. */
export function describeSource({ source, createdBy }: Pick<DoNotCallEntryView, 'source' | 'createdBy'>): string {
  if (source === 'outcome') return 'Opted out during a call';
  return createdBy?.name ?? 'Operator';
}
