import { useState } from 'preact/hooks';
import { type NumberRules, type RestrictedKind, restrictedKindLabels, restrictedKinds } from '#contract/protection/numbers.ts';
import type { NumbersView } from '#contract/protection/protection.ts';
import { Facts } from '../../components/details.tsx';
import { Form, FormError, SubmitButton, TextField } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { announce } from '../../state/announcement.ts';
import { isConflict, lookUpChange } from '../../state/failure-text.ts';
import type { List } from '../../state/list.ts';
import { describeCountries, readCountries, type Tenancy } from '../../state/protection.ts';
import { chosenTenancy, Outdated, RulesHead, saveRules, type TabProps, withName } from './tenancy.tsx';

export function AllowedNumbers({ title, own, canChange, filters, onChange, tabs, actions }: TabProps) {
  // Campaigns don't have these rules.
  const { kind, id, ...rest } = chosenTenancy(own, filters.scope.startsWith('campaign/') ? { ...filters, scope: '' } : filters);
  const list = useList<NumbersView>({
    key: `numbers/${kind}/${id}`,
    load: () => window.callkey.request('showNumbers', { scope: kind === 'partner' ? 'partner' : 'account', id }),
  });
  const chosen = withName({ kind, id, ...rest }, list.state.value.view);
  return (
    <ListPage
      title={title}
      actions={actions(chosen)}
      head={<RulesHead {...{ tabs, own, chosen, onChange }} kinds={['partner', 'account']} />}
      list={list}
      foot={<span>A number is checked when a call is placed, and again before it’s dialed.</span>}
      noun="allowed numbers"
    >
      {(numbers) => (canChange ? <NumbersForm key={id} tenancy={chosen} numbers={numbers} list={list} /> : <Allowed numbers={numbers} />)}
    </ListPage>
  );
}

function Allowed({ numbers: { effective } }: { numbers: NumbersView }) {
  return (
    <Facts
      facts={[
        ['Countries', effective.countries.length === 0 ? 'All countries' : describeCountries(effective.countries)],
        ['Kinds', describeKinds(effective.kinds)],
      ]}
    />
  );
}

function describeKinds(kinds: readonly RestrictedKind[]): string {
  return ['Ordinary numbers', ...kinds.map((kind) => restrictedKindLabels[kind].toLowerCase())].join(', ');
}

type NumbersFormProps = { tenancy: Tenancy; numbers: NumbersView; list: List<NumbersView> };

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

function NumbersForm({ tenancy, numbers, list }: NumbersFormProps) {
  const { countries: own, kinds: ownKinds, effective } = numbers;
  // Contains only what the user has changed. For everything else, the form shows and saves what others have saved.
  const [draft, setDraft] = useState<Partial<NumbersDraft>>({});
  const { countryChoice, text, inheritsKinds, kinds } = { ...toDraft(numbers), ...draft };
  // The settings that the user has changed, as they were saved before.
  const [started, setStarted] = useState<Partial<NumberRules>>({});
  const change = (changes: Partial<NumbersDraft>, setting: Partial<NumberRules>) => {
    setDraft((before) => ({ ...before, ...changes }));
    setStarted((before) => ({ ...setting, ...before }));
  };
  const changeCountries = (changes: Partial<NumbersDraft>) => change(changes, { countries: own });
  const changeKinds = (changes: Partial<NumbersDraft>) => change(changes, { kinds: ownKinds });
  const saved: NumberRules = { countries: own, kinds: ownKinds };
  const isOutdated = JSON.stringify({ ...saved, ...started }) !== JSON.stringify(saved);
  const listed = readCountries(text);
  const countries = countryChoice === 'inherit' ? null : countryChoice === 'all' ? [] : listed;
  const inheritance = tenancy.kind === 'partner' ? 'the default' : 'its partner';
  // Without any country, the core would allow all countries.
  const isIncomplete = countryChoice === 'some' && listed.length === 0;
  const input = {
    scope: tenancy.kind === 'partner' ? 'partner' : 'account',
    id: tenancy.id,
    countries,
    kinds: inheritsKinds ? null : [...kinds],
    version: numbers.version,
  } as const;
  return (
    <Form
      class="settings"
      problems={{ countries: isIncomplete ? 'Enter a country.' : null }}
      clearsErrors
      act={() => saveRules(list, () => window.callkey.request('setNumbers', input))}
      lookUp={() => {
        const { scope, id, version: _, ...chosen } = input;
        const isSaved = (view: NumbersView) =>
          JSON.stringify([view.countries, view.kinds]) === JSON.stringify([chosen.countries, chosen.kinds]);
        return lookUpChange(window.callkey.request('showNumbers', { scope, id }), isSaved);
      }}
      onDone={(view) => {
        setDraft({});
        setStarted({});
        list.change(view);
        announce('Allowed numbers were saved.');
      }}
    >
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
            name="countries"
            label="Country codes"
            hint={listed.length === 0 ? 'Two letters each, such as DE, AT, CH.' : describeCountries(listed)}
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
      <Outdated isOutdated={isOutdated}>
        These settings were changed after you started editing them. If you save, your settings will replace those changes.
      </Outdated>
      <FormError hides={(failure) => isOutdated && isConflict(failure)} />
      <div class="row">
        <SubmitButton verb="Save" verbing="Saving…" isOff={isIncomplete} />
      </div>
    </Form>
  );
}
