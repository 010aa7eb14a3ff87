import type { CampaignsView } from '#contract/console.ts';

/** @property value the id of a campaign; empty for all of them */
type CampaignSelectProps = { campaigns: CampaignsView; value: string; onChange: (id: string) => void };

/** The campaigns by their account. */
export function CampaignSelect({ campaigns, value, onChange }: CampaignSelectProps) {
  return (
    <select id={selectId} aria-label="Campaign" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {campaigns.campaigns.length > 1 && <option value="">All campaigns</option>}
      {byAccount(campaigns).map(([account, items]) => (
        <optgroup key={account} label={account}>
          {items.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

const selectId = 'campaign';

/** Another campaign replaces the screen, and what had the focus. */
export function focusCampaignSelect(): void {
  requestAnimationFrame(() => document.getElementById(selectId)?.focus());
}

function byAccount({ campaigns }: CampaignsView): [string, CampaignsView['campaigns']][] {
  const groups = Map.groupBy(campaigns, ({ account }) => account.name);
  return [...groups];
}
