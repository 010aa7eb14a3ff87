import type { SessionView } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import type { RequestInput } from '../../../ipc.ts';
import { PickerDialog } from '../../components/forms/picker-dialog.tsx';
import { useAction } from '../../components/forms/use-action.ts';
import { announce } from '../../state/announcement.ts';
import { mapped } from '../../state/loading/resource.ts';
import { setSession } from '../../state/session.ts';
import { formatWorkspace } from '../../state/workspace.ts';

/** Finds accounts and partners as the user types, and selects one. */
export function TenancySwitcher({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const { isBusy, failure, run, unlessBusy } = useAction();

  function select(choice: RequestInput<'selectTenancy'>): void {
    void run(
      () => window.callkey.request('selectTenancy', choice),
      (selected) => {
        onClose();
        setSession(selected);
        announce(selected.tenancy ? `Selected ${formatWorkspace(selected)}.` : 'Selection cleared.');
      },
    );
  }

  return (
    <PickerDialog
      title="Switch account or partner"
      label="Find an account or partner"
      listLabel="Accounts and partners"
      placeholder="Type a name"
      find={findTenancies}
      empty="There are no accounts yet. Create them in Directory."
      onChoose={({ tenancy: { kind, id } }) => select({ kind, id })}
      isBusy={isBusy}
      failure={failure}
      onClose={unlessBusy(onClose)}
    >
      {session.tenancy && (
        <button type="button" aria-disabled={isBusy} onClick={() => select({ kind: null })}>
          Clear selection
        </button>
      )}
    </PickerDialog>
  );
}

function findTenancies(search: string) {
  return mapped(window.callkey.request('searchTenancies', { search }), ({ tenancies }) => ({
    options: tenancies.map((tenancy) => {
      const { kind, id, name, partnerName = '' } = tenancy;
      return { id: `${kind}:${id}`, name, caption: kind === 'partner' ? 'Partner' : `Account · ${partnerName}`, tenancy };
    }),
    isAll: tenancies.length < limits.tenancies,
  }));
}
