import type { SessionView } from '#contract/console.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Details, Facts } from '../../components/details.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { announce } from '../../state/announcement.ts';
import { childKinds, type DirectoryEntry, type DirectoryKind, kindLabels } from '../../state/directory.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { formatNumber } from '../../state/format/format.ts';
import { chosenCampaign, showScreen } from '../../state/navigation.ts';
import { setSession } from '../../state/session.ts';

type EntryDetailsProps = {
  entry: DirectoryEntry;
  session: SessionView;
  onRename: () => void;
  onShow: (kind: DirectoryKind) => void;
  onClose: () => void;
};

/** Everything about a partner, an account or a campaign, and the actions for it. */
export function EntryDetails({ entry, session, onRename, onShow, onClose }: EntryDetailsProps) {
  const { kind, id, name, partner, account, count } = entry;
  const childKind = childKinds[kind];
  return (
    <Details title={name} badge={<span class="badge">{kindLabels[kind].one}</span>} onClose={onClose}>
      <Facts
        facts={[
          [
            'ID',
            <span key="id" class="line">
              <code>{id}</code> <CopyButton text={id} what="ID" />
            </span>,
          ],
          ...(account ? ([['Account', <bdi key="account">{account.name}</bdi>]] as const) : []),
          ...(partner ? ([['Partner', <bdi key="partner">{partner.name}</bdi>]] as const) : []),
          ...(childKind && count !== null ? ([[kindLabels[childKind].many, formatNumber(count)]] as const) : []),
        ]}
      />
      <div class="actions at-start">
        <OpenButton entry={entry} session={session} />
        {childKind && (
          <button type="button" onClick={() => onShow(childKind)}>
            Show {kindLabels[childKind].few}s
          </button>
        )}
        <button type="button" onClick={onRename}>
          Rename…
        </button>
      </div>
    </Details>
  );
}

/** Staff select the partner or account that they open. Everyone can open a campaign's calls. */
function OpenButton({ entry, session }: Pick<EntryDetailsProps, 'entry' | 'session'>) {
  const { isBusy, failure, run } = useAction();
  const { kind, id, name, account } = entry;
  const isStaff = session.viewer.userType === 'staff';
  if (!isStaff && kind !== 'campaign') return null;
  const tenancy = kind === 'campaign' ? { kind: 'account' as const, id: account?.id ?? '' } : { kind, id };

  async function open(): Promise<void> {
    if (isStaff) await run(() => window.callkey.request('selectTenancy', tenancy), show);
    else show(session);
  }

  function show(view: SessionView): void {
    setSession(view);
    if (kind === 'campaign') chosenCampaign.value = id;
    showScreen(kind === 'campaign' ? 'calls' : 'api-keys');
    announce(`Opened ${name}.`);
  }

  return (
    <>
      <button type="button" class="primary" aria-disabled={isBusy} onClick={() => void open()}>
        {kind === 'campaign' ? 'Open calls' : 'Open'}
      </button>
      <FormError text={failure && describeFailure(failure)} />
    </>
  );
}
