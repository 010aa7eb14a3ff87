import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Failure, Result } from '../../../ipc.ts';
import { describeFailure } from '../../state/format/failure-text.ts';
import { pluralize } from '../../state/format/format.ts';
import { useResource } from '../loadable.tsx';
import { typingMs } from '../use-pages.ts';
import { Dialog } from './dialog.tsx';
import { FormError } from './field.tsx';
import { type Option, Picker } from './picker.tsx';
import { useDebounced } from './use-debounced.ts';

/** @property isAll whether there are no other matches */
export type Matches<Choice extends Option> = { options: Choice[]; isAll: boolean };

type PickerDialogProps<Choice extends Option> = {
  title: string;
  /** The name of the field and the list for screen readers. */
  label: string;
  listLabel: string;
  placeholder: string;
  find: (search: string) => Promise<Result<Matches<Choice>>>;
  /** Shown if there's nothing to choose from. */
  empty?: string;
  onChoose: (choice: Choice) => void;
  /** Whether the choice is being saved. */
  isBusy?: boolean;
  /** Why the last choice failed. */
  failure?: Failure | null;
  onClose: () => void;
  /** Buttons before Cancel. */
  children?: ComponentChildren;
};

/** Lets the user choose one of many entries, which the core searches as the user types. */
export function PickerDialog<Choice extends Option>(props: PickerDialogProps<Choice>) {
  const { title, label, listLabel, placeholder, find, empty, onChoose, isBusy = false, failure = null, onClose, children } = props;
  const [search, setSearch] = useState('');
  const typed = search.trim();
  const settled = useDebounced(typed, typingMs);
  const resource = useResource(() => find(settled), settled);
  const { value, isLoading, failure: findFailure } = resource.state.value;
  const matches = isLoading || findFailure || settled !== typed ? null : value;
  const why = failure ?? findFailure;
  return (
    <Dialog title={title} onDismiss={onClose}>
      <Picker
        label={label}
        listLabel={listLabel}
        placeholder={placeholder}
        search={search}
        onSearch={setSearch}
        options={matches?.options ?? null}
        onChoose={onChoose}
      />
      <FormError text={why && describeFailure(why)} />
      <p class="hint" role="status">
        {isBusy ? 'Selecting…' : findFailure ? '' : describeMatches(matches, typed, empty)}
      </p>
      <div class="actions">
        {children}
        <button type="button" aria-disabled={isBusy} onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function describeMatches(matches: Matches<Option> | null, search: string, empty = 'There’s nothing to choose from yet.'): string {
  if (matches === null) return 'Searching…';
  if (matches.options.length === 0) return search === '' ? empty : `Nothing matches “${search}”.`;
  const count = pluralize(matches.options.length, 'match', 'matches');
  return matches.isAll ? count : `Showing the first ${count}. Type more of the name to find others.`;
}
