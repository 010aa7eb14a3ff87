import { useState } from 'preact/hooks';
import { type RestrictedKind, restrictedKindLabels, restrictedKinds } from '#contract/protection/numbers.ts';
import type { NumbersView } from '#contract/protection/protection.ts';
import { FormError } from '../../../components/forms/field.tsx';
import { TextField } from '../../../components/forms/text-field.tsx';
import { useAction } from '../../../components/forms/use-action.ts';
import { Loadable, useFreshResource } from '../../../components/loadable.tsx';
import { Page } from '../../../components/page.tsx';
import { announce } from '../../../state/announcement.ts';
import { fieldError, generalError } from '../../../state/format/failure-text.ts';
import { type NamedScope, ScopeSelect } from '../scope-select.tsx';
import type { TabProps } from '../tab-props.ts';
import { useScope, withName } from '../use-scope.ts';
import { describeCountries, readCountries } from './countries.ts';

/** Shows which countries and kinds of numbers may be called, and changes them. */
export function AllowedNumbers({ title, home, canChange, view, onView, tabs, check }: TabProps) {
  const { scope: chosen, choose } = useScope(home, view.scope.startsWith('campaign/') ? { ...view, scope: '' } : view, onView);
  const resource = useFreshResource<NumbersView>(`numbers/${chosen.kind}/${chosen.id}`, () =>
    window.callkey.request('showNumbers', { scope: chosen.kind === 'partner' ? 'partner' : 'account', id: chosen.id }),
  );
  const scope = withName(chosen, resource.state.value.value);
  return (
    <Page
      title={title}
      actions={check}
      head={
        <>
          {tabs}
          <div class="toolbar">
            <ScopeSelect home={home} kinds={['partner', 'account']} chosen={scope} onChoose={choose} />
          </div>
        </>
      }
      resource={resource}
      foot={<span>Checked when a call is placed, and again before it’s dialed.</span>}
    >
      <Loadable resource={resource} noun="allowed numbers" isInPage>
        {(numbers) =>
          canChange ? (
            <NumbersForm
              key={`${scope.id} ${JSON.stringify(numbers)}`}
              scope={scope}
              numbers={numbers}
              onSaved={(saved) => {
                resource.change(saved);
                announce('Allowed numbers were saved.');
              }}
            />
          ) : (
            <Allowed numbers={numbers} />
          )
        }
      </Loadable>
    </Page>
  );
}

/** Shows the settings to viewers who can't change them. */
function Allowed({ numbers: { effective } }: { numbers: NumbersView }) {
  return (
    <dl class="facts">
      <dt>Countries</dt>
      <dd>{effective.countries.length === 0 ? 'All countries' : describeCountries(effective.countries)}</dd>
      <dt>Kinds</dt>
      <dd>{describeKinds(effective.kinds)}</dd>
    </dl>
  );
}

function describeKinds(kinds: readonly RestrictedKind[]): string {
  return ['Ordinary numbers', ...kinds.map((kind) => restrictedKindLabels[kind].toLowerCase())].join(', ');
}

type NumbersFormProps = { scope: NamedScope; numbers: NumbersView; onSaved: (numbers: NumbersView) => void };

function NumbersForm({ scope, numbers: { countries: own, kinds: ownKinds, effective }, onSaved }: NumbersFormProps) {
  const [countryChoice, setCountryChoice] = useState<'inherit' | 'all' | 'some'>(
    own === null ? 'inherit' : own.length === 0 ? 'all' : 'some',
  );
  const [text, setText] = useState((own ?? []).join(', '));
  const [inheritsKinds, setInheritsKinds] = useState(ownKinds === null);
  const [kinds, setKinds] = useState<readonly RestrictedKind[]>(ownKinds ?? effective.kinds);
  const { isBusy, failure, form, run } = useAction();
  const listed = readCountries(text);
  const countries = countryChoice === 'inherit' ? null : countryChoice === 'all' ? [] : listed;
  const inheritance = scope.kind === 'partner' ? 'the default' : 'its partner';
  const save = () =>
    run(
      () =>
        window.callkey.request('setNumbers', {
          scope: scope.kind === 'partner' ? 'partner' : 'account',
          id: scope.id,
          countries,
          kinds: inheritsKinds ? null : [...kinds],
        }),
      onSaved,
    );
  return (
    <form
      ref={form}
      class="settings"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <fieldset>
        <legend>Countries that may be called</legend>
        {(['inherit', 'all', 'some'] as const).map((choice) => (
          <label key={choice} class="check">
            <input type="radio" name="countries" checked={countryChoice === choice} onChange={() => setCountryChoice(choice)} />
            <span>
              {choice === 'inherit' ? `Same as ${inheritance}` : choice === 'all' ? 'All countries' : 'Only these'}
              {choice === 'inherit' && own === null && (
                <span class="faint">: {effective.countries.length === 0 ? 'all countries' : describeCountries(effective.countries)}</span>
              )}
            </span>
          </label>
        ))}
        {countryChoice === 'some' && (
          <TextField
            label="Country codes"
            hint={listed.length === 0 ? 'Two letters each, such as DE, AT, CH.' : describeCountries(listed)}
            error={fieldError(failure, 'countries') ?? (listed.length === 0 && failure ? 'Enter a country.' : null)}
            type="text"
            autocomplete="off"
            value={text}
            onInput={setText}
          />
        )}
      </fieldset>
      <fieldset>
        <legend>Kinds that are refused by default</legend>
        <p class="hint">Calls to these numbers are expensive, so someone with a stolen key would call them first.</p>
        <label class="check">
          <input type="checkbox" checked={inheritsKinds} onChange={({ currentTarget }) => setInheritsKinds(currentTarget.checked)} />
          <span>
            Same as {inheritance}
            {ownKinds === null && <span class="faint">: {describeKinds(effective.kinds).toLowerCase()}</span>}
          </span>
        </label>
        {!inheritsKinds &&
          restrictedKinds.map((kind) => (
            <label key={kind} class="check">
              <input
                type="checkbox"
                checked={kinds.includes(kind)}
                onChange={() => setKinds(restrictedKinds.filter((each) => (each === kind) !== kinds.includes(each)))}
              />
              Allow {restrictedKindLabels[kind].toLowerCase()}
            </label>
          ))}
      </fieldset>
      <FormError text={generalError(failure, ['countries'])} />
      <div class="actions at-start">
        <button type="submit" class="primary" aria-disabled={isBusy || (countryChoice === 'some' && listed.length === 0)}>
          {isBusy ? 'Saving…' : 'Save'}
        </button>
      </div>
    </form>
  );
}
