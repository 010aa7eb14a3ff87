import type { SessionView } from '#contract/console/session.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Details, Facts } from '../../components/details.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { childKinds, type DirectoryEntry, type DirectoryKind, kindLabels } from '../../state/directory.ts';
import { formatNumber } from '../../state/format/format.ts';

type EntryDetailsProps = {
  entry: DirectoryEntry;
  session: SessionView;
  onRename: () => void;
  onDelete: () => void;
  onShow: (kind: DirectoryKind) => void;
  onClose: () => void;
};

/** Shows everything about a partner, an account or a campaign, and the actions for it. */
export function EntryDetails({ entry, session, onRename, onDelete, onShow, onClose }: EntryDetailsProps) {
  const { kind, id, name, partner, account, count } = entry;
  const childKind = childKinds[kind];
  return (
    <Details title={name} badge={<span class="badge">{kindLabels[kind].singular}</span>} onClose={onClose}>
      <div class="actions at-start">
        <OpenLink entry={entry} session={session} />
        {childKind && (
          <button type="button" onClick={() => onShow(childKind)}>
            Show {kindLabels[childKind].noun}s
          </button>
        )}
        <button type="button" onClick={onRename}>
          Rename…
        </button>
        <button type="button" class="warns" onClick={onDelete}>
          Delete…
        </button>
      </div>
      <Facts
        facts={[
          [
            'ID',
            <span key="id" class="line">
              <code>{id}</code> <CopyButton text={id} noun="ID" />
            </span>,
          ],
          ...(account ? ([['Account', <bdi key="account">{account.name}</bdi>]] as const) : []),
          ...(partner ? ([['Partner', <bdi key="partner">{partner.name}</bdi>]] as const) : []),
          ...(childKind && count !== null ? ([[kindLabels[childKind].plural, formatNumber(count)]] as const) : []),
        ]}
      />
    </Details>
  );
}

/** Switches staff to a partner or an account, or opens a campaign's calls for any user. */
function OpenLink({ entry, session }: Pick<EntryDetailsProps, 'entry' | 'session'>) {
  const { kind, id, account } = entry;
  const isStaff = session.viewer.userType === 'staff';
  if (kind === 'campaign') {
    const tenancy = isStaff && account ? ({ kind: 'account', id: account.id } as const) : undefined;
    return (
      <a class="button primary" href={formatAddress('calls', { campaign: id }, tenancy)}>
        Open calls
      </a>
    );
  }
  return (
    isStaff && (
      <a class="button primary" href={formatAddress('api-keys', {}, { kind, id })}>
        Open
      </a>
    )
  );
}
