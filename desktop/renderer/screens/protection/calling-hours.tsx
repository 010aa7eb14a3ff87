import { useId, useState } from 'preact/hooks';
import { type HoursRule, hoursRulesSchema, isTime, type Weekday, type Window, weekdays } from '#contract/protection/calling-hours.ts';
import { dayLabels, describeDates, describePrefixes, formatWindows, toWeeks, type Week } from '#contract/protection/describe-hours.ts';
import type { CallingHoursView } from '#contract/protection/protection.ts';
import { parseJson } from '#contract/text/json.ts';
import { DayInput, TimeInput } from '../../components/dates.tsx';
import { Facts } from '../../components/details.tsx';
import { Field, FormDialog, useFieldError, useForm } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, useList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { announce } from '../../state/announcement.ts';
import { dayMinutes, dayProblem, isDay, today } from '../../state/days.ts';
import { isConflict, lookUpChange } from '../../state/failure-text.ts';
import { formatIsoDay } from '../../state/format.ts';
import type { List } from '../../state/list.ts';
import { distinctRules, isPrefix, nextWindow, summarizeHours, type Tenancy, toRuleKey } from '../../state/protection.ts';
import { chosenTenancy, Outdated, RulesHead, saveRules, type TabProps, withName } from './tenancy.tsx';

export function CallingHours({ title, own, canChange, filters, onChange, tabs, actions }: TabProps) {
  const { kind, id, ...rest } = chosenTenancy(own, filters);
  const list = useList<CallingHoursView>({
    key: `hours/${kind}/${id}`,
    load: () => window.callkey.request('showCallingHours', { scope: kind, id }),
  });
  const [isEditing, setEditing] = useState(false);
  const { view: hours } = list.state.value;
  const chosen = withName({ kind, id, ...rest }, hours);
  return (
    <>
      <ListPage
        title={title}
        actions={
          <>
            {actions(chosen)}
            {canChange && hours && (
              <button type="button" class="primary" onClick={() => setEditing(true)}>
                {hours.rules.length === 0 ? 'Set hours…' : 'Change hours…'}
              </button>
            )}
          </>
        }
        head={<RulesHead {...{ tabs, own, chosen, onChange }} />}
        list={list}
        foot={<span>Calling hours use the time zone of the person being called.</span>}
        noun="calling hours"
      >
        {({ rules, inherited }) =>
          rules.length > 0 ? (
            <Hours rules={rules} />
          ) : inherited && inherited.rules.length > 0 ? (
            <>
              <p class="notice">
                <span>
                  Inherited from the {inherited.from.kind} <bdi>{inherited.from.name}</bdi>. Rules set here replace all of these.
                </span>
              </p>
              <Hours rules={inherited.rules} />
            </>
          ) : (
            <Empty title="No calling hours">
              <p>People may be called at any time. If you set calling hours, a call waits until they begin in the person’s time zone.</p>
            </Empty>
          )
        }
      </ListPage>
      {isEditing && hours && (
        <EditHours
          tenancy={chosen}
          hours={hours}
          list={list}
          onSaved={(saved) => {
            setEditing(false);
            list.change(saved);
            announce('Calling hours were saved.');
          }}
          onClose={() => setEditing(false)}
        />
      )}
    </>
  );
}

function Hours({ rules }: { rules: readonly HoursRule[] }) {
  const weeks = toWeeks(rules);
  const dates = describeDates(rules);
  return (
    <div class="hours">
      <p class="notice">{summarizeHours(rules)}</p>
      {weeks.map(({ prefixes, days }) => (
        <section key={prefixes.join()}>
          <h2>{describePrefixes(prefixes, weeks.length > 1)}</h2>
          <WeekTable days={days} />
        </section>
      ))}
      {dates.length > 0 && (
        <section>
          <h2>On these dates</h2>
          <Facts facts={dates.map(({ date, text }) => [formatIsoDay(date), text])} />
        </section>
      )}
    </div>
  );
}

function WeekTable({ days }: Pick<Week, 'days'>) {
  return (
    <table class="week">
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Day</th>
          <th scope="col">Hours</th>
        </tr>
      </thead>
      <tbody>
        {days.map(({ day, windows }) => (
          <tr key={day}>
            <th scope="row">{dayLabels[day]}</th>
            <td>
              <DayBar windows={windows} />
              <span class={windows.length === 0 ? 'faint' : ''}>{formatWindows(windows)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Shows a day from midnight to midnight, with marks every six hours. The text next to it says the same. */
function DayBar({ windows }: { windows: readonly Window[] }) {
  return (
    <svg class="day-bar" viewBox={`0 0 ${dayMinutes} 10`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect fill="var(--sunken)" width={dayMinutes} height="10" />
      {windows.map(({ from, to }) => (
        <rect key={from} fill="var(--bar)" x={from} width={to - from} height="10" />
      ))}
      {[6, 12, 18].map((hour) => (
        <rect key={hour} fill="var(--ground)" x={hour * 60 - 1} width="2" height="10" />
      ))}
    </svg>
  );
}

type EditHoursProps = {
  tenancy: Tenancy;
  /** The saved hours, which someone else may change while the dialog is open. */
  hours: CallingHoursView;
  list: List<CallingHoursView>;
  onSaved: (hours: CallingHoursView) => void;
  onClose: () => void;
};

/** What the dialog edits: the hours of a week for each prefix, and single dates. Prefixes stay apart while someone types the same one. */
type Draft = { weeks: readonly { prefix: string; rules: readonly HoursRule[] }[]; dates: readonly HoursRule[] };

function toDraft(rules: readonly HoursRule[]): Draft {
  const [weekly, dates] = [rules.filter(({ days }) => days), rules.filter(({ days }) => !days)];
  return {
    weeks: Array.from(
      Map.groupBy(weekly, ({ prefix }) => prefix),
      ([prefix, ofPrefix]) => ({ prefix, rules: ofPrefix }),
    ),
    dates,
  };
}

/** Returns what is sent: each rule once. */
function toRules({ weeks, dates }: Draft): HoursRule[] {
  return distinctRules([...weeks.flatMap(({ prefix, rules }) => rules.map((rule) => ({ ...rule, prefix }))), ...dates]);
}

const workdays: Weekday[] = ['mon', 'tue', 'wed', 'thu', 'fri'];
const firstRule: HoursRule = { prefix: '', days: workdays, from: '09:00', to: '20:00' };

/** Edits all rules of a partner, account or campaign. Nothing is saved until all of them are valid. */
function EditHours({ tenancy: { kind, id, name }, hours, list, onSaved, onClose }: EditHoursProps) {
  const { rules: saved, version, inherited } = hours;
  const [opened] = useState(saved);
  const [draft, setDraft] = useState(toDraft(saved.length === 0 ? [firstRule] : saved));
  const [fileProblem, setFileProblem] = useState<string | null>(null);
  const isOutdated = JSON.stringify(saved) !== JSON.stringify(opened);
  const rules = toRules(draft);
  const inForce = rules.length === 0 ? (inherited?.rules ?? []) : rules.filter(({ prefix }) => isPrefix(prefix));
  const isDescribed = inForce.length > 0 || rules.length === 0;
  return (
    <FormDialog
      title={`Calling hours for ${name}`}
      isWide="very"
      act={() => saveRules(list, () => window.callkey.request('setCallingHours', { scope: kind, id, rules, version }))}
      lookUp={() =>
        lookUpChange(
          window.callkey.request('showCallingHours', { scope: kind, id }),
          (view) => JSON.stringify(view.rules) === JSON.stringify(rules),
        )
      }
      onDone={onSaved}
      clearsErrors
      hides={(failure) => isOutdated && isConflict(failure)}
      verb="Save"
      verbing="Saving…"
      onClose={onClose}
    >
      <Weeks draft={draft} onChange={setDraft} />
      <p class={isDescribed ? 'notice' : ''} role="status">
        <span>
          {rules.length === 0 && inherited && inherited.rules.length > 0 && `As for the ${inherited.from.kind} ${inherited.from.name}. `}
          {isDescribed && summarizeHours(inForce)}
        </span>
      </p>
      <Field label="Or load a JSON file" hint="It replaces everything above." error={fileProblem}>
        {(binding) => (
          <input
            {...binding}
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget }) =>
              void currentTarget.files?.[0]?.text().then((text) => {
                const read = hoursRulesSchema.safeParse(parseJson(text));
                setFileProblem(read.success ? null : 'This isn’t a list of rules. See the examples in the documentation.');
                if (read.success) setDraft(toDraft(read.data));
              })
            }
          />
        )}
      </Field>
      <Outdated isOutdated={isOutdated}>
        These hours were changed after you opened this dialog. If you save, your rules will replace those changes.
      </Outdated>
    </FormDialog>
  );
}

function Weeks({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const { noteInput } = useForm();
  const { weeks, dates } = draft;
  const change = (changes: Partial<Draft>) => {
    noteInput();
    onChange({ ...draft, ...changes });
  };
  const changeWeek = (index: number, week: Draft['weeks'][number]) =>
    change({ weeks: week.rules.length === 0 ? weeks.toSpliced(index, 1) : weeks.with(index, week) });
  const sent = toRules(draft).map(toRuleKey);
  const nameOf = (rule: HoursRule) => `rules.${sent.indexOf(toRuleKey(rule))}`;
  const lastWeek = weeks.at(-1) ?? { prefix: '', rules: [firstRule] };
  const neighbor = dates.at(-1) ?? { prefix: lastWeek.prefix, closed: true as const };
  return (
    <div class="stack weeks">
      {weeks.map(({ prefix, rules }, index) => (
        <fieldset key={index} class="stack week-rules">
          <legend class="visually-hidden">Hours for {prefix === '' ? 'all numbers' : prefix}</legend>
          <span class="row">
            Numbers that start with
            <Prefix
              name={nameOf({ ...(rules[0] ?? firstRule), prefix })}
              prefix={prefix}
              onChange={(typed) => changeWeek(index, { prefix: typed, rules })}
            />
          </span>
          {rules.map((rule, at) => (
            <RuleFields
              key={at}
              name={nameOf({ ...rule, prefix })}
              rule={rule}
              onChange={(changed) => changeWeek(index, { prefix, rules: rules.with(at, changed) })}
              onRemove={() => changeWeek(index, { prefix, rules: rules.toSpliced(at, 1) })}
            />
          ))}
          <button
            type="button"
            onClick={({ currentTarget }) => {
              changeWeek(index, { prefix, rules: [...rules, nextWindow(rules.at(-1) ?? firstRule)] });
              focusAdded(() => currentTarget.previousElementSibling);
            }}
          >
            <Icon name="plus" /> Add hours
          </button>
          {toWeeks(rules).map(({ days }) => (
            <WeekTable key={prefix} days={days} />
          ))}
        </fieldset>
      ))}
      {dates.length > 0 && (
        <fieldset class="stack week-rules">
          <legend>On these dates, instead of all other hours</legend>
          {dates.map((rule, at) => (
            <RuleFields
              key={at}
              name={nameOf(rule)}
              rule={rule}
              onChange={(changed) => change({ dates: dates.with(at, changed) })}
              onRemove={() => change({ dates: dates.toSpliced(at, 1) })}
            />
          ))}
        </fieldset>
      )}
      <div class="row">
        <button
          type="button"
          onClick={({ currentTarget: { parentElement } }) => {
            change({ weeks: [...weeks, weeks.length === 0 ? lastWeek : { ...lastWeek, prefix: '+' }] });
            focusAdded(() => parentElement?.parentElement?.children[weeks.length]);
          }}
        >
          <Icon name="plus" /> {weeks.length === 0 ? 'Add hours' : 'Add hours for other numbers'}
        </button>
        <button
          type="button"
          onClick={({ currentTarget: { parentElement } }) => {
            change({ dates: [...dates, { ...neighbor, date: '' }] });
            focusAdded(() => parentElement?.previousElementSibling?.lastElementChild);
          }}
        >
          <Icon name="plus" /> Add a date
        </button>
      </div>
    </div>
  );
}

/** Moves to the first field of what was just added, once it's there. */
function focusAdded(find: () => Element | null | undefined): void {
  queueMicrotask(() => find()?.querySelector('input')?.select());
}

/** @property name its rule's name in the request */
type PrefixProps = { name: string; prefix: string; onChange: (prefix: string) => void };

function Prefix({ name, prefix, onChange }: PrefixProps) {
  const id = useId();
  const error = useFieldError(`${name}.prefix`);
  return (
    <>
      <input
        class="prefix"
        type="text"
        inputMode="tel"
        aria-label="Numbers that start with"
        {...boxError(error, id)}
        placeholder="All numbers"
        value={prefix}
        onInput={({ currentTarget }) => onChange(currentTarget.value.replaceAll(' ', ''))}
      />
      {error !== null && (
        <span id={id} class="error">
          {error}
        </span>
      )}
    </>
  );
}

/** Marks a box whose error is shown elsewhere. @param id the element with the error */
function boxError(error: string | null, id: string) {
  return error === null ? {} : ({ 'aria-invalid': 'true', 'aria-describedby': id } as const);
}

type RuleFieldsProps = { name: string; rule: HoursRule; onChange: (rule: HoursRule) => void; onRemove: () => void };

function RuleFields({ name, rule, onChange, onRemove }: RuleFieldsProps) {
  const id = useId();
  const whole = useFieldError(name);
  const prefixError = useFieldError(`${name}.prefix`);
  const fromError = useFieldError(`${name}.from`);
  const laterError = useFieldError(`${name}.to`);
  const { prefix, days, date, from, to, closed } = rule;
  // If the start isn't a time, the core can't tell whether the end is later.
  const toError = fromError !== null && isTime(to ?? '') ? null : laterError;
  const when = days ? { days } : { date };
  const isWrongDay = whole !== null && !days && !isDay(date ?? '');
  const boxProblem = fromError ?? toError;
  // The prefix shows its own error.
  const error = isWrongDay ? dayProblem : (boxProblem ?? (prefixError === null ? whole : null));
  const isWholeWrong = error !== null && error === whole && boxProblem === null;
  return (
    <fieldset
      class="row rule"
      aria-invalid={isWholeWrong ? 'true' : undefined}
      aria-describedby={isWholeWrong ? id : undefined}
      tabIndex={isWholeWrong ? -1 : undefined}
    >
      <legend class="visually-hidden">Rule</legend>
      {days ? (
        <span class="row days">
          {weekdays.map((day) => (
            <button
              key={day}
              type="button"
              aria-pressed={days.includes(day)}
              title={dayLabels[day]}
              onClick={() => onChange({ ...rule, days: weekdays.filter((each) => (each === day) !== days.includes(each)) })}
            >
              {dayLabels[day].slice(0, 3)}
            </button>
          ))}
        </span>
      ) : (
        <>
          <DayInput
            label="Date"
            min={today()}
            {...boxError(isWrongDay ? dayProblem : null, id)}
            value={date ?? ''}
            onInput={(day) => onChange({ ...rule, date: day })}
          />
          <Prefix name={name} prefix={prefix} onChange={(typed) => onChange({ ...rule, prefix: typed })} />
        </>
      )}
      {(!days || closed) && (
        <label class="check">
          <input
            type="checkbox"
            checked={closed === true}
            onChange={({ currentTarget }) =>
              onChange(currentTarget.checked ? { prefix, ...when, closed: true } : { prefix, ...when, from: '09:00', to: '20:00' })
            }
          />
          Closed
        </label>
      )}
      {!closed && (
        <span class="line">
          <TimeInput label="From" {...boxError(fromError, id)} value={from ?? ''} onInput={(time) => onChange({ ...rule, from: time })} /> –{' '}
          <TimeInput
            label="To"
            {...boxError(toError, id)}
            value={to ?? ''}
            onInput={(time) => onChange({ ...rule, to: time === '00:00' ? '24:00' : time })}
          />
        </span>
      )}
      <button type="button" class="quiet icon-only end" aria-label="Remove this rule" data-tip="Remove" onClick={onRemove}>
        <Icon name="trash" />
      </button>
      {error !== null && (
        <p id={id} class="error">
          {error}
        </p>
      )}
    </fieldset>
  );
}
