import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

export type Option = { id: string; name: string; caption: string };

type PickerProps<Choice extends Option> = {
  /** The name of the field and the list for screen readers. */
  label: string;
  listLabel: string;
  placeholder: string;
  search: string;
  onSearch: (search: string) => void;
  /** Null while searching. */
  options: readonly Choice[] | null;
  onChoose: (option: Choice) => void;
};

/** Shows a text field above a list; arrows and Enter choose an option (ARIA APG, combobox with a listbox). */
export function Picker<Choice extends Option>(props: PickerProps<Choice>) {
  const { label, listLabel, placeholder, search, onSearch, options, onChoose } = props;
  const [active, setActive] = useState(0);
  const listId = useId();

  // Set if the user presses Enter before the search has returned. The first result for the typed text is then chosen, not an earlier
  // result.
  const isChosen = useRef(false);
  useLayoutEffect(() => {
    setActive(0);
    const [first] = options ?? [];
    if (isChosen.current && options) isChosen.current = false;
    else return;
    if (first) onChoose(first);
  }, [options]);
  useLayoutEffect(() => document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: 'nearest' }), [active, listId]);

  function onKeyDown(event: KeyboardEvent): void {
    const count = options?.length ?? 0;
    if (event.key === 'ArrowDown') setActive((active + 1) % Math.max(1, count));
    else if (event.key === 'ArrowUp') setActive((active + count - 1) % Math.max(1, count));
    else if (event.key === 'Enter') {
      isChosen.current = options === null;
      const chosen = options?.[active];
      if (chosen) onChoose(chosen);
    } else return;
    event.preventDefault();
  }

  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={options && options.length > 0 ? `${listId}-${active}` : undefined}
        placeholder={placeholder}
        value={search}
        data-autofocus
        onInput={({ currentTarget }) => {
          isChosen.current = false;
          onSearch(currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={listId} class="options" role="listbox" aria-label={listLabel}>
        {options?.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: The combobox handles the keys (ARIA APG).
          <div
            key={option.id}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onClick={() => onChoose(option)}
            onPointerMove={() => setActive(index)}
          >
            <span class="name clip">{option.name}</span>
            <span class="caption clip">{option.caption}</span>
          </div>
        ))}
      </div>
    </>
  );
}
