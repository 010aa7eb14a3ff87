import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { SessionView, TenanciesView } from '#contract/console.ts';
import type { Failure, TenancyChoice } from '../../ipc.ts';
import { Dialog } from '../components/dialog.tsx';
import { FormError } from '../components/field.tsx';
import { announce } from '../state/announcement.ts';
import { describeFailure } from '../state/failure-text.ts';
import { pluralize } from '../state/format.ts';
import { handleSessionFailure, setSession } from '../state/session.ts';

type Found = TenanciesView['tenancies'][number];
const typingMs = 120;

/** Finds accounts and partners as the user types; arrows and Enter select one (ARIA APG, combobox with a listbox). */
export function TenancySwitcher({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [search, setSearch] = useState('');
  const { found, failure: searchFailure } = useTenancies(search);
  const [active, setActive] = useState(0);
  const [selectFailure, setFailure] = useState<Failure | null>(null);
  const listId = useId();
  const failure = selectFailure ?? searchFailure;

  // Enter before the search has answered selects the first result for the typed text, not one of the previous results.
  const isChosen = useRef(false);
  useLayoutEffect(() => {
    setActive(0);
    const [first] = found ?? [];
    if (isChosen.current && found) isChosen.current = false;
    else return;
    if (first) void select({ kind: first.kind, id: first.id }, first.name);
  }, [found]);
  useLayoutEffect(() => document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: 'nearest' }), [active, listId]);

  async function select(choice: TenancyChoice, name: string): Promise<void> {
    const result = await handleSessionFailure(window.callkey.selectTenancy(choice));
    if (!result.ok) return setFailure(result.failure);
    onClose();
    setSession(result.value);
    announce(name === '' ? 'Selected no account or partner.' : `Selected ${name}.`);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const count = found?.length ?? 0;
    if (event.key === 'ArrowDown') setActive((active + 1) % Math.max(1, count));
    else if (event.key === 'ArrowUp') setActive((active + count - 1) % Math.max(1, count));
    else if (event.key === 'Enter') {
      isChosen.current = found === null;
      const chosen = found?.[active];
      if (chosen) void select({ kind: chosen.kind, id: chosen.id }, chosen.name);
    } else return;
    event.preventDefault();
  }

  return (
    <Dialog title="Switch account or partner" onDismiss={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Find an account or partner"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={found && found.length > 0 ? `${listId}-${active}` : undefined}
        placeholder="Type a name"
        value={search}
        autofocus
        onInput={({ currentTarget }) => {
          isChosen.current = false;
          setSearch(currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <FormError text={failure && describeFailure(failure)} />
      <p class="visually-hidden" role="status">
        {found ? pluralize(found.length, 'match', 'matches') : 'Searching'}
      </p>
      <div id={listId} class="options" role="listbox" aria-label="Accounts and partners">
        {found?.map((tenancy, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: The combobox handles the keys (ARIA APG).
          <div
            key={`${tenancy.kind}:${tenancy.id}`}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onClick={() => void select({ kind: tenancy.kind, id: tenancy.id }, tenancy.name)}
            onPointerMove={() => setActive(index)}
          >
            <span class="name">{tenancy.name}</span>
            <span class="caption">{tenancy.kind === 'partner' ? 'Partner' : `Account · ${tenancy.partnerName ?? ''}`}</span>
          </div>
        ))}
      </div>
      {found?.length === 0 && <p class="hint">No account or partner matches “{search.trim()}”.</p>}
      <div class="actions">
        {session.tenancy && (
          <button type="button" onClick={() => void select({ kind: null }, '')}>
            Select none
          </button>
        )}
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

/** The results for the current search; answers to older ones are dropped. */
function useTenancies(search: string): { found: Found[] | null; failure: Failure | null } {
  const [state, setState] = useState<{ search: string | null; found: Found[] | null; failure: Failure | null }>({
    search: null,
    found: null,
    failure: null,
  });
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const result = await handleSessionFailure(window.callkey.searchTenancies(search.trim()));
      if (!isCurrent) return;
      setState({ search, found: result.ok ? result.value.tenancies : null, failure: result.ok ? null : result.failure });
    }, typingMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [search]);
  return state.search === search ? state : { found: null, failure: null };
}
