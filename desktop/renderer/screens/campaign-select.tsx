import type { CampaignsView } from '#contract/console.ts';

type CampaignSelectProps = { campaigns: CampaignsView; value: string; onChange: (id: string) => void };

/** The campaigns by their account. */
export function CampaignSelect({ campaigns, value, onChange }: CampaignSelectProps) {
  return (
    <select aria-label="Campaign" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
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

function byAccount({ campaigns }: CampaignsView): [string, CampaignsView['campaigns']][] {
  const groups = Map.groupBy(campaigns, ({ account }) => account.name);
  return [...groups];
}
