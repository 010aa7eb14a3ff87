import type { ComponentProps } from 'preact';
import { Select } from './form.tsx';

type SearchInputProps = Pick<ComponentProps<'input'>, 'inputMode'> & {
  label: string;
  placeholder?: string;
  value: string;
  onInput: (value: string) => void;
};

export function SearchInput({ label, placeholder = label, inputMode, value, onInput }: SearchInputProps) {
  return (
    <label class="grow">
      <span class="visually-hidden">{label}</span>
      <input type="search" {...{ placeholder, inputMode, value }} onInput={({ currentTarget }) => onInput(currentTarget.value)} />
    </label>
  );
}

type ChoiceProps<Name extends string> = {
  label?: string;
  value: Name;
  options: readonly (readonly [Name, string])[];
  onChange: (value: Name) => void;
};

export function FilterSelect<Name extends string>({ label, ...select }: ChoiceProps<Name>) {
  return (
    <div class="filter">
      <Select aria-label={label} {...select} />
    </div>
  );
}

export function Chips<Name extends string>({ label = 'Show', value, options, onChange }: ChoiceProps<Name>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: A fieldset is for a form's fields; these are buttons.
    <div class="row chips" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onChange(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}
