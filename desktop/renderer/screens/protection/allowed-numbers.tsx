import { useState } from 'preact/hooks';
import { type NumberRules, type RestrictedKind, restrictedKindLabels, restrictedKinds } from '#contract/protection/numbers.ts';
import type { NumbersView } from '#contract/protection/protection.ts';
import { FormError, focusFirstInvalid, TextField, useAction } from '../../components/form.tsx';
import { Loadable, useFreshResource } from '../../components/list.tsx';
import { Page } from '../../components/page.tsx';
import { announce } from '../../state/announcement.ts';
import { fieldError, generalError, isConflict } from '../../state/failure-text.ts';
import type { Resource } from '../../state/list.ts';
import { describeCountries, readCountries } from '../../state/protection.ts';
import { type NamedScope, ScopeSelect, saveRules, type TabProps, useScope, withName } from './tenancy.tsx';

/** Shows which countries and kinds of numbers may be called, and lets users change them. */
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
      foot={<span>A number is checked when a call is placed, and again before it’s dialed.</span>}
    >
      <Loadable resource={resource} noun="allowed numbers" isInPage>
        {(numbers) =>
          canChange ? (
            <NumbersForm
              key={scope.id}
              scope={scope}
              numbers={numbers}
              resource={resource}
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

type NumbersFormProps = {
  scope: NamedScope;
  numbers: NumbersView;
  resource: Resource<NumbersView>;
  onSaved: (numbers: NumbersView) => void;
};

type NumbersDraft = {
  countryChoice: 'inherit' | 'all' | 'some';
  text: string;
  inheritsKinds: boolean;
  kinds: readonly RestrictedKind[];
};

function toDraft({ countries, kinds, effective }: NumbersView): NumbersDraft {
  return {
    countryChoice: countries === null ? 'inherit' : countries.length === 0 ? 'all' : 'some',
    text: (countries ?? []).join(', '),
    inheritsKinds: kinds === null,
    kinds: kinds ?? effective.kinds,
  };
}

function NumbersForm({ scope, numbers, resource, onSaved }: NumbersFormProps) {
  const { countries: own, kinds: ownKinds, effective } = numbers;
  // Contains only what the user has changed. For everything else, the form shows and saves what others have saved.
  const [draft, setDraft] = useState<Partial<NumbersDraft>>({});
  const { countryChoice, text, inheritsKinds, kinds } = { ...toDraft(numbers), ...draft };
  // The settings that the user has changed, as they were saved before.
  const [started, setStarted] = useState<Partial<NumberRules>>({});
  const change = (changes: Partial<NumbersDraft>, setting: Partial<NumberRules>) => {
    clearError();
    setDraft((before) => ({ ...before, ...changes }));
    setStarted((before) => ({ ...setting, ...before }));
  };
  const changeCountries = (changes: Partial<NumbersDraft>) => change(changes, { countries: own });
  const changeKinds = (changes: Partial<NumbersDraft>) => change(changes, { kinds: ownKinds });
  const [hasTried, setTried] = useState(false);
  const { isBusy, failure, form, run, clearError } = useAction();
  const saved: NumberRules = { countries: own, kinds: ownKinds };
  const isOutdated = !isBusy && JSON.stringify({ ...saved, ...started }) !== JSON.stringify(saved);
  const listed = readCountries(text);
  const countries = countryChoice === 'inherit' ? null : countryChoice === 'all' ? [] : listed;
  const inheritance = scope.kind === 'partner' ? 'the default' : 'its partner';
  const isIncomplete = countryChoice === 'some' && listed.length === 0;
  function submit(event: Event): void {
    event.preventDefault();
    setTried(true);
    // Without any country, the core would allow all countries.
    if (isIncomplete) {
      focusFirstInvalid(form.current);
      return;
    }
    const kind = scope.kind === 'partner' ? 'partner' : 'account';
    const input = { scope: kind, id: scope.id, countries, kinds: inheritsKinds ? null : [...kinds], version: numbers.version } as const;
    void run(
      () => saveRules(resource, () => window.callkey.request('setNumbers', input)),
      (view) => {
        setDraft({});
        setStarted({});
        onSaved(view);
      },
    );
  }
  return (
    <form ref={form} class="settings" noValidate onSubmit={submit}>
      <fieldset>
        <legend>Countries that may be called</legend>
        {(['inherit', 'all', 'some'] as const).map((choice) => (
          <label key={choice} class="check">
            <input
              type="radio"
              name="countries"
              checked={countryChoice === choice}
              onChange={() => changeCountries({ countryChoice: choice })}
            />
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
            error={fieldError(failure, 'countries') ?? (hasTried && isIncomplete ? 'Enter a country.' : null)}
            type="text"
            autocomplete="off"
            value={text}
            onInput={(typed) => changeCountries({ text: typed })}
          />
        )}
      </fieldset>
      <fieldset>
        <legend>Kinds that are refused by default</legend>
        <p class="hint">Calls to these numbers are expensive, so someone with a stolen key would call them first.</p>
        <label class="check">
          <input
            type="checkbox"
            checked={inheritsKinds}
            onChange={({ currentTarget }) => changeKinds({ inheritsKinds: currentTarget.checked })}
          />
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
                onChange={() => changeKinds({ kinds: restrictedKinds.filter((each) => (each === kind) !== kinds.includes(each)) })}
              />
              Allow {restrictedKindLabels[kind].toLowerCase()}
            </label>
          ))}
      </fieldset>
      {isOutdated && (
        <p class="warning" role="status">
          These settings were changed after you started editing them. If you save, your settings will replace those changes.
        </p>
      )}
      <FormError text={generalError(isOutdated && failure && isConflict(failure) ? null : failure, ['countries'])} />
      <div class="actions at-start">
        <button type="submit" class="primary" aria-disabled={isBusy || isIncomplete}>
          {isBusy ? 'Saving…' : 'Save'}
        </button>
      </div>
    </form>
  );
}
