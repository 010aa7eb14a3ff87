import { callStates } from '#contract/calls/states.ts';
import type { CallsView } from '#contract/console/calls.ts';
import { DayRange } from '../../components/charts/day-range.tsx';
import { summaryMs } from '../../components/charts/outcomes.ts';
import { useFreshResource } from '../../components/loadable.tsx';
import { callStateLabels } from '../../state/format/labels.ts';
import { labelKeys } from '../api-keys/list/key-list.ts';
import type { CallsSettings } from './calls-view.ts';

type CallFiltersProps = { calls: CallsView['calls']; settings: CallsSettings; onChange: (changes: Partial<CallsSettings>) => void };

/** Shows the search and the filters of a list of calls. The core applies them. */
export function CallFilters({ calls, settings: { search, state, apiKey, from, to }, onChange }: CallFiltersProps) {
  return (
    <search class="toolbar">
      <label class="grow">
        <span class="visually-hidden">Search</span>
        <input
          type="search"
          placeholder="Contact, phone number, or request ID"
          value={search}
          onInput={({ currentTarget }) => onChange({ search: currentTarget.value })}
        />
      </label>
      <label>
        <span class="visually-hidden">State</span>
        <select
          value={state ?? ''}
          onChange={({ currentTarget }) => onChange({ state: callStates.find((name) => name === currentTarget.value) ?? null })}
        >
          <option value="">Any outcome</option>
          {callStates.map((name) => (
            <option key={name} value={name}>
              {callStateLabels[name]}
            </option>
          ))}
        </select>
      </label>
      <KeyFilter calls={calls} apiKey={apiKey} onChange={(chosen) => onChange({ apiKey: chosen })} />
      <DayRange from={from} to={to} onChange={onChange} />
    </search>
  );
}

type KeyFilterProps = { calls: CallsView['calls']; apiKey: string; onChange: (apiKey: string) => void };

/** Offers the keys that the viewer can see, and revoked keys that placed some of the calls shown. */
function KeyFilter({ calls, apiKey, onChange }: KeyFilterProps) {
  const keys = useFreshResource('keys-of-calls', () => window.callkey.request('listApiKeys', {}), summaryMs);
  const options = labelKeys([...calls.flatMap((call) => call.apiKey ?? []), ...(keys.state.value.value?.apiKeys ?? [])]);
  // The address may name an older key than the ones that are listed.
  if (apiKey !== '' && !options.has(apiKey)) options.set(apiKey, 'Selected key');
  return (
    <label>
      <span class="visually-hidden">Key</span>
      <select value={apiKey} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">Any key</option>
        {[...options].map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
