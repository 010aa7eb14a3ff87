import { useEffect, useMemo, useState } from 'preact/hooks';
import type { SessionView, TenanciesView } from '#contract/console/session.ts';
import type { Failure, RequestInput } from '../../../ipc.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { FormError } from '../../components/forms/field.tsx';
import { type Option, Picker } from '../../components/forms/picker.tsx';
import { announce } from '../../state/announcement.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';
import { handleSessionFailure, setSession } from '../../state/session.ts';

type Match = TenanciesView['tenancies'][number];
const typingMs = 120;

/** Finds accounts and partners as the user types, and selects one. */
export function TenancySwitcher({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [search, setSearch] = useState('');
  const { matches, failure: searchFailure } = useTenancies(search);
  const [selectFailure, setFailure] = useState<Failure | null>(null);
  const failure = selectFailure ?? searchFailure;
  const options = useMemo(() => matches?.map(toOption) ?? null, [matches]);

  async function select(choice: RequestInput<'selectTenancy'>, name: string): Promise<void> {
    const result = await handleSessionFailure(window.callkey.request('selectTenancy', choice));
    if (!result.ok) return setFailure(result.failure);
    onClose();
    setSession(result.value);
    announce(name === '' ? 'Selection cleared.' : `Selected ${name}.`);
  }

  return (
    <Dialog title="Switch account or partner" onDismiss={onClose}>
      <Picker
        label="Find an account or partner"
        listLabel="Accounts and partners"
        placeholder="Type a name"
        search={search}
        onSearch={setSearch}
        options={options}
        onChoose={({ id }) => {
          const tenancy = matches?.find((each) => toOptionId(each) === id);
          if (tenancy) void select({ kind: tenancy.kind, id: tenancy.id }, tenancy.name);
        }}
      />
      <FormError text={failure && describeFailure(failure)} />
      <p class="visually-hidden" role="status">
        {matches ? pluralize(matches.length, 'match', 'matches') : 'Searching'}
      </p>
      {matches?.length === 0 && (
        <p class="hint">
          {search.trim() === ''
            ? 'There are no accounts yet. Create them in Directory.'
            : `No account or partner matches “${search.trim()}”.`}
        </p>
      )}
      <div class="actions">
        {session.tenancy && (
          <button type="button" onClick={() => void select({ kind: null }, '')}>
            Clear selection
          </button>
        )}
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function toOptionId({ kind, id }: Match): string {
  return `${kind}:${id}`;
}

function toOption(tenancy: Match): Option {
  const { kind, name, partnerName } = tenancy;
  return { id: toOptionId(tenancy), name, caption: kind === 'partner' ? 'Partner' : `Account · ${partnerName ?? ''}` };
}

/** Loads the results for the current search. Responses to earlier searches are dropped. */
function useTenancies(search: string): { matches: Match[] | null; failure: Failure | null } {
  const [state, setState] = useState<{ search: string | null; matches: Match[] | null; failure: Failure | null }>({
    search: null,
    matches: null,
    failure: null,
  });
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const result = await handleSessionFailure(window.callkey.request('searchTenancies', { search: search.trim() }));
      if (!isCurrent) return;
      setState({ search, matches: result.ok ? result.value.tenancies : null, failure: result.ok ? null : result.failure });
    }, typingMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [search]);
  return state.search === search ? state : { matches: null, failure: null };
}
