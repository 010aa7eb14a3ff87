import { useState } from 'preact/hooks';
import type { CampaignsView } from '#contract/console/directory.ts';
import { PickerDialog } from '../../components/forms/picker-dialog.tsx';
import { mapped } from '../../state/loading/resource.ts';

export type Campaign = CampaignsView['campaigns'][number];

/** The first page of campaigns, which is enough for most users. */
export const firstPage = { search: '', cursor: null };

/** @param campaign null for all campaigns */
type OnChange = (id: string, campaign: Campaign | null) => void;

/**
 * @property chosen null for all campaigns
 * @property isRequired whether the user must choose a single campaign
 */
type CampaignSelectProps = { campaigns: CampaignsView; chosen: Campaign | null; isRequired?: boolean; onChange: OnChange };

/** Offers the campaigns grouped by account, or a search if there are more than a list can show. */
export function CampaignSelect(props: CampaignSelectProps) {
  return props.campaigns.nextCursor === null ? <CampaignList {...props} /> : <CampaignSearch {...props} />;
}

function CampaignList({ campaigns, chosen, isRequired = false, onChange }: CampaignSelectProps) {
  return (
    <select
      id={selectId}
      aria-label="Campaign"
      value={chosen?.id ?? ''}
      onChange={({ currentTarget: { value } }) => onChange(value, campaigns.campaigns.find(({ id }) => id === value) ?? null)}
    >
      {!isRequired && campaigns.campaigns.length > 1 && <option value="">All campaigns</option>}
      {byAccount(campaigns).map((items) => (
        <optgroup key={items[0]?.account.id} label={items[0]?.account.name}>
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

function CampaignSearch({ chosen, isRequired = false, onChange }: CampaignSelectProps) {
  const [isOpen, setOpen] = useState(false);
  const choose: OnChange = (...choice) => {
    setOpen(false);
    onChange(...choice);
  };
  return (
    <>
      <button type="button" id={selectId} class="clip" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {chosen === null ? 'Choose a campaign…' : chosen.name}
      </button>
      {isOpen && <CampaignDialog hasAll={!isRequired && chosen !== null} onChoose={choose} onClose={() => setOpen(false)} />}
    </>
  );
}

type CampaignDialogProps = { hasAll: boolean; onChoose: OnChange; onClose: () => void };

function CampaignDialog({ hasAll, onChoose, onClose }: CampaignDialogProps) {
  return (
    <PickerDialog
      title="Choose a campaign"
      label="Find a campaign"
      listLabel="Campaigns"
      placeholder="Type the name of a campaign or account"
      find={findCampaigns}
      onChoose={({ id, campaign }) => onChoose(id, campaign)}
      onClose={onClose}
    >
      {hasAll && (
        <button type="button" onClick={() => onChoose('', null)}>
          All campaigns
        </button>
      )}
    </PickerDialog>
  );
}

function findCampaigns(search: string) {
  return mapped(window.callkey.request('listCampaigns', { search, cursor: null }), ({ campaigns, nextCursor }) => ({
    options: campaigns.map((campaign) => ({ id: campaign.id, name: campaign.name, caption: campaign.account.name, campaign })),
    isAll: nextCursor === null,
  }));
}

const selectId = 'campaign';

/** Moves the focus back to the select, because choosing another campaign replaces the screen and the focused element. */
export function focusCampaignSelect(): void {
  requestAnimationFrame(() => document.getElementById(selectId)?.focus());
}

function byAccount({ campaigns }: CampaignsView): CampaignsView['campaigns'][] {
  return [...Map.groupBy(campaigns, ({ account }) => account.id).values()];
}
