import { useState } from 'preact/hooks';
import type { SessionView } from '#contract/console/session.ts';
import { limits } from '#contract/limits.ts';
import type { Failure, RequestInput } from '../../../ipc.ts';
import { PickerDialog } from '../../components/forms/picker-dialog.tsx';
import { announce } from '../../state/announcement.ts';
import { mapped } from '../../state/loading/resource.ts';
import { handleSessionFailure, setSession } from '../../state/session.ts';
import { formatWorkspace } from '../../state/workspace.ts';

/** Finds accounts and partners as the user types, and selects one. */
export function TenancySwitcher({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [failure, setFailure] = useState<Failure | null>(null);

  async function select(choice: RequestInput<'selectTenancy'>): Promise<void> {
    const result = await handleSessionFailure(window.callkey.request('selectTenancy', choice));
    if (!result.ok) return setFailure(result.failure);
    onClose();
    setSession(result.value);
    announce(result.value.tenancy ? `Selected ${formatWorkspace(result.value)}.` : 'Selection cleared.');
  }

  return (
    <PickerDialog
      title="Switch account or partner"
      label="Find an account or partner"
      listLabel="Accounts and partners"
      placeholder="Type a name"
      find={findTenancies}
      empty="There are no accounts yet. Create them in Directory."
      onChoose={({ tenancy: { kind, id } }) => void select({ kind, id })}
      failure={failure}
      onClose={onClose}
    >
      {session.tenancy && (
        <button type="button" onClick={() => void select({ kind: null })}>
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
