import { useState } from 'preact/hooks';
import {
  type ContactLimits,
  type ContactLimitsView,
  contactLimitsSchema,
  type Pace,
  type PaceView,
  paceSchema,
} from '#contract/protection/dialing.ts';
import type { Result } from '../../../ipc.ts';
import { Facts } from '../../components/details.tsx';
import { Form, FormError, SubmitButton, TextField } from '../../components/form.tsx';
import { useList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { announce } from '../../state/announcement.ts';
import { lookUpChange } from '../../state/failure-text.ts';
import { readDecimal, readWhole } from '../../state/format.ts';
import { capitalized } from '../../state/labels.ts';
import type { List } from '../../state/list.ts';
import { describeContactLimits, describePace, type Tenancy } from '../../state/protection.ts';
import { chosenTenancy, RulesHead, saveRules, type TabProps, withName } from './tenancy.tsx';

/** @property pace null for a partner, which has none */
type LimitsView = { pace: PaceView | null; contact: ContactLimitsView };

const refreshMs = 30_000;

export function PaceAndLimits({ title, own, canChange, filters, onChange, tabs, actions }: TabProps) {
  const { kind, id, ...rest } = chosenTenancy(own, filters);
  const list = useList<LimitsView>({ key: `limits/${kind}/${id}`, every: refreshMs, load: () => loadLimits({ kind, id, ...rest }) });
  const chosen = withName({ kind, id, ...rest }, list.state.value.view?.contact ?? null);
  return (
    <ListPage
      title={title}
      actions={actions(chosen)}
      head={<RulesHead {...{ tabs, own, chosen, onChange }} />}
      list={list}
      foot={<span>A call waits in the queue until its turn comes and its number may be called.</span>}
      noun="pace and limits"
    >
      {(view) => (canChange ? <LimitsForms key={id} tenancy={chosen} view={view} list={list} /> : <Limits view={view} />)}
    </ListPage>
  );
}

async function loadLimits({ kind, id }: Tenancy): Promise<Result<LimitsView>> {
  const [contact, pace] = await Promise.all([
    window.callkey.request('showContactLimits', { scope: kind, id }),
    kind === 'partner' ? null : window.callkey.request('showPace', { scope: kind, id }),
  ]);
  if (!contact.ok) return contact;
  if (pace && !pace.ok) return pace;
  return { ok: true, value: { contact: contact.value, pace: pace?.value ?? null } };
}

function Limits({ view: { pace, contact } }: { view: LimitsView }) {
  return (
    <Facts
      facts={[
        ['Pace', pace && capitalized(describePace(pace) ?? 'No limit')],
        ['Contact limits', contact.effective ? describeEffective(contact.effective) : 'No limit'],
      ]}
    />
  );
}

function describeEffective({ from, limits }: NonNullable<ContactLimitsView['effective']>): string {
  return `${describeContactLimits(limits)} (from the ${from.kind} ${from.name})`;
}

type LimitsProps = { tenancy: Tenancy; view: LimitsView; list: List<LimitsView> };

function LimitsForms({ tenancy, view, list }: LimitsProps) {
  const { pace, contact } = view;
  return (
    <div class="stack">
      {pace && <PaceForm {...{ tenancy, list }} view={{ pace, contact }} pace={pace} />}
      <ContactLimitsForm {...{ tenancy, view, list }} />
    </div>
  );
}

/** Returns null for an empty field. What isn't a number becomes one that no limit allows. */
function readLimit(text: string, read = readWhole): number | null {
  return text.trim() === '' ? null : read(text);
}

/** Whether saved settings are those of the form. */
function isSame<Settings extends object>(saved: Settings | null, input: Settings | null): boolean {
  if (saved === null || input === null) return saved === input;
  const values = new Map<string, unknown>(Object.entries(saved));
  return Object.entries(input).every(([name, value]) => name === 'version' || values.get(name) === value);
}

function PaceForm({ tenancy, view, pace, list }: LimitsProps & { pace: PaceView }) {
  // Contains only what the user has changed. For everything else, the form shows and saves what others have saved.
  const [draft, setDraft] = useState<{ perSecond?: string; liveCalls?: string }>({});
  const { perSecond = String(pace.perSecond ?? ''), liveCalls = String(pace.liveCalls ?? '') } = draft;
  const input: Pace = { perSecond: readLimit(perSecond, readDecimal), liveCalls: readLimit(liveCalls) };
  const { shape } = paceSchema;
  const scope = tenancy.kind === 'campaign' ? 'campaign' : 'account';
  return (
    <Form
      class="settings"
      problems={{
        perSecond: shape.perSecond.safeParse(input.perSecond).success ? null : 'Must be a number from 0.1 to 1,000, or empty.',
        liveCalls: shape.liveCalls.safeParse(input.liveCalls).success ? null : 'Must be a whole number from 1 to 100,000, or empty.',
      }}
      clearsErrors
      act={() => saveRules(list, () => window.callkey.request('setPace', { scope, id: tenancy.id, ...input, version: pace.version }))}
      lookUp={() => lookUpChange(window.callkey.request('showPace', { scope, id: tenancy.id }), (saved) => isSame(saved, input))}
      onDone={(saved) => {
        setDraft({});
        list.change({ ...view, pace: saved });
        announce('The pace was saved.');
      }}
    >
      <fieldset>
        <legend>Pace</legend>
        <p class="hint">How fast calls leave for the provider. The slowest pace of the campaign, its account and the server applies.</p>
        <TextField
          name="perSecond"
          label="Calls per second"
          hint="Empty for no limit."
          inputMode="decimal"
          value={perSecond}
          onInput={(typed) => setDraft({ ...draft, perSecond: typed })}
        />
        <TextField
          name="liveCalls"
          label="Live calls"
          hint="How many calls may be with the provider at the same time. Empty for no limit."
          inputMode="numeric"
          value={liveCalls}
          onInput={(typed) => setDraft({ ...draft, liveCalls: typed })}
        />
      </fieldset>
      <FormError />
      <div class="row">
        <SubmitButton verb="Save pace" verbing="Saving…" />
      </div>
    </Form>
  );
}

const limitFields = [
  { name: 'calls', label: 'Calls to one number', problem: 'Must be a whole number from 1 to 100.' },
  { name: 'days', label: 'In this many days', problem: 'Must be a whole number from 1 to 30.' },
  { name: 'minutesBetween', label: 'Minutes between two calls', problem: 'Must be a whole number from 0 to 43,200.' },
] as const;

function ContactLimitsForm({ tenancy, view, list }: LimitsProps) {
  const { limits, effective } = view.contact;
  const scope = { scope: tenancy.kind, id: tenancy.id };
  const [draft, setDraft] = useState<Partial<Record<keyof ContactLimits, string>>>({});
  const texts = limitFields.map(({ name }) => draft[name] ?? String(limits?.[name] ?? ''));
  const [calls = null, days = null, minutesBetween = null] = texts.map((text) => readLimit(text));
  const isNone = calls === null && days === null && minutesBetween === null;
  const input = isNone ? null : { calls: calls ?? Number.NaN, days: days ?? Number.NaN, minutesBetween: minutesBetween ?? Number.NaN };
  const isValid = (name: keyof ContactLimits) => !input || contactLimitsSchema.shape[name].safeParse(input[name]).success;
  const inherited = limits === null && effective ? effective : null;
  return (
    <Form
      class="settings"
      problems={Object.fromEntries(limitFields.map(({ name, problem }) => [name, isValid(name) ? null : problem]))}
      clearsErrors
      act={() =>
        saveRules(list, () => window.callkey.request('setContactLimits', { ...scope, limits: input, version: view.contact.version }))
      }
      lookUp={() => lookUpChange(window.callkey.request('showContactLimits', scope), ({ limits }) => isSame(limits, input))}
      onDone={(saved) => {
        setDraft({});
        list.change({ ...view, contact: saved });
        announce('Contact limits were saved.');
      }}
    >
      <fieldset>
        <legend>Contact limits</legend>
        <p class="hint">
          How often one number may be called.{' '}
          {tenancy.kind === 'partner' ? 'Calls of all its accounts count.' : 'Calls of the whole account count.'}{' '}
          {tenancy.kind === 'partner'
            ? 'Empty for no limit.'
            : `If all three are empty, the limits of its ${tenancy.kind === 'account' ? 'partner' : 'account or partner'} apply.`}
        </p>
        {inherited && (
          <p class="notice">
            <span>
              Inherited: <bdi>{describeEffective(inherited)}</bdi>.
            </span>
          </p>
        )}
        {limitFields.map(({ name, label }, index) => (
          <TextField
            key={name}
            name={name}
            label={label}
            inputMode="numeric"
            value={texts[index] ?? ''}
            onInput={(typed) => setDraft({ ...draft, [name]: typed })}
          />
        ))}
      </fieldset>
      <FormError />
      <div class="row">
        <SubmitButton verb="Save limits" verbing="Saving…" />
      </div>
    </Form>
  );
}
