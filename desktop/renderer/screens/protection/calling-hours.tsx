import { useState } from 'preact/hooks';
import { type HoursRule, hoursRulesSchema, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';
import type { CallingHoursView } from '#contract/protection/protection.ts';
import { parseJson } from '#contract/text/json.ts';
import { DayInput, TimeInput } from '../../components/dates.tsx';
import { Field, FormDialog, useFieldError, useForm } from '../../components/form.tsx';
import { Icon } from '../../components/icons.tsx';
import { Empty, useList } from '../../components/list.tsx';
import { ListPage } from '../../components/page.tsx';
import { announce } from '../../state/announcement.ts';
import { isConflict } from '../../state/failure-text.ts';
import type { List } from '../../state/list.ts';
import {
  dayLabels,
  describeDates,
  describePrefixes,
  formatWindows,
  leavesNumbersOpen,
  toWeeks,
  type Week,
  type Window,
} from '../../state/protection.ts';
import type { Tenancy } from '../../state/tenancy.ts';
import { chosenTenancy, Outdated, RulesHead, saveRules, type TabProps, withName } from './tenancy.tsx';

/** Shows the week in which people may be called, including hours that the tenancy inherits. */
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
        head={<RulesHead {...{ tabs, own, chosen, onChange }} kinds={['partner', 'account', 'campaign']} />}
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
      {leavesNumbersOpen(rules) && (
        <p class="notice">Numbers that no rule matches may be called at any time. To change this, add hours for all numbers.</p>
      )}
      {weeks.map((week) => (
        <WeekTable key={week.prefixes.join()} week={week} label={describePrefixes(week.prefixes, weeks.length > 1)} />
      ))}
      {dates.length > 0 && (
        <section>
          <h2>On these dates</h2>
          <dl class="facts dates">
            {dates.map(({ date, text }) => (
              <div key={`${date} ${text}`}>
                <dt>{date}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </div>
  );
}

function WeekTable({ week, label }: { week: Week; label: string }) {
  return (
    <section>
      <h2>{label}</h2>
      <table class="week">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Day</th>
            <th scope="col">Hours</th>
          </tr>
        </thead>
        <tbody>
          {week.days.map(({ day, windows }) => (
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
    </section>
  );
}

const dayMinutes = 24 * 60;

/** Shows a day from midnight to midnight, with marks every six hours. The text next to it says the same. */
function DayBar({ windows }: { windows: readonly Window[] }) {
  return (
    <svg class="day-bar" viewBox={`0 0 ${dayMinutes} 10`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect class="closed" width={dayMinutes} height="10" />
      {windows.map(({ from, to }) => (
        <rect key={from} class="open" x={from} width={to - from} height="10" />
      ))}
      {[6, 12, 18].map((hour) => (
        <rect key={hour} class="mark" x={hour * 60 - 1} width="2" height="10" />
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

const workdays: Weekday[] = ['mon', 'tue', 'wed', 'thu', 'fri'];
const newRule: HoursRule = { prefix: '', days: workdays, from: '09:00', to: '20:00' };

/** Edits all rules of a partner, account or campaign. Nothing is saved until all of them are valid. */
function EditHours({ tenancy: { kind, id, name }, hours: { rules: saved, version }, list, onSaved, onClose }: EditHoursProps) {
  const [opened] = useState(saved);
  const [rules, setRules] = useState<readonly HoursRule[]>(saved.length === 0 ? [newRule] : saved);
  const [fileProblem, setFileProblem] = useState<string | null>(null);
  const isOutdated = JSON.stringify(saved) !== JSON.stringify(opened);
  const input = { scope: kind, id, rules: [...rules], version };
  return (
    <FormDialog
      title={`Calling hours for ${name}`}
      isWide="very"
      act={() => saveRules(list, () => window.callkey.request('setCallingHours', input))}
      onDone={onSaved}
      clearsErrors
      hides={(failure) => isOutdated && isConflict(failure)}
      verb="Save"
      verbing="Saving…"
      onClose={onClose}
    >
      <p class="hint">
        Times are in the time zone of the person being called. The rules with the longest matching prefix apply. A day without a rule is
        closed. A rule for a date replaces all other rules on that date.
      </p>
      <Rules rules={rules} onChange={setRules} />
      <Field label="Or load a JSON file" hint="It replaces all rules above." error={fileProblem}>
        {(binding) => (
          <input
            {...binding}
            type="file"
            accept=".json,application/json"
            onChange={({ currentTarget }) =>
              void currentTarget.files?.[0]?.text().then((text) => {
                const read = hoursRulesSchema.safeParse(parseJson(text));
                setFileProblem(read.success ? null : 'This isn’t a list of rules. See the examples in the documentation.');
                if (read.success) setRules(read.data);
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

function Rules({ rules, onChange }: { rules: readonly HoursRule[]; onChange: (rules: readonly HoursRule[]) => void }) {
  const { noteInput } = useForm();
  const change = (changed: readonly HoursRule[]) => {
    noteInput();
    onChange(changed);
  };
  return (
    <>
      <div class="rules stack">
        {rules.map((rule, index) => (
          <RuleFields
            key={index}
            name={`rules.${index}`}
            rule={rule}
            onChange={(changed) => change(rules.with(index, changed))}
            onRemove={() => change(rules.toSpliced(index, 1))}
          />
        ))}
        {rules.length === 0 && <p class="notice">Without rules, inherited hours apply.</p>}
      </div>
      <div class="actions at-start">
        <button type="button" onClick={() => change([...rules, newRule])}>
          <Icon name="plus" /> Add hours
        </button>
        <button type="button" onClick={() => change([...rules, { prefix: '', date: '', closed: true }])}>
          <Icon name="plus" /> Add a date
        </button>
      </div>
    </>
  );
}

type RuleFieldsProps = { name: string; rule: HoursRule; onChange: (rule: HoursRule) => void; onRemove: () => void };

function RuleFields({ name, rule, onChange, onRemove }: RuleFieldsProps) {
  const error = useFieldError(name);
  const { prefix, days, date, from, to, closed } = rule;
  return (
    <fieldset class="rule" aria-invalid={error === null ? undefined : 'true'} tabIndex={error === null ? undefined : -1}>
      <legend class="visually-hidden">Rule</legend>
      <input
        class="prefix"
        type="text"
        inputMode="tel"
        aria-label="Numbers that start with"
        placeholder="All numbers"
        value={prefix}
        onInput={({ currentTarget }) => onChange({ ...rule, prefix: currentTarget.value.replaceAll(' ', '') })}
      />
      {days ? (
        <span class="days">
          {weekdays.map((day) => (
            <button
              key={day}
              type="button"
              aria-pressed={days.includes(day)}
              onClick={() => onChange({ ...rule, days: weekdays.filter((each) => (each === day) !== days.includes(each)) })}
            >
              {dayLabels[day].slice(0, 3)}
            </button>
          ))}
        </span>
      ) : (
        <DayInput label="Date" value={date ?? ''} onInput={(day) => onChange({ ...rule, date: day })} />
      )}
      {!days && (
        <label class="check">
          <input
            type="checkbox"
            checked={closed === true}
            onChange={({ currentTarget }) =>
              onChange(currentTarget.checked ? { prefix, date, closed: true } : { prefix, date, from: '09:00', to: '20:00' })
            }
          />
          Closed
        </label>
      )}
      {!closed && (
        <span class="line">
          <TimeInput label="From" value={from ?? ''} onInput={(time) => onChange({ ...rule, from: time })} /> –{' '}
          <TimeInput label="To" value={to ?? ''} onInput={(time) => onChange({ ...rule, to: time === '00:00' ? '24:00' : time })} />
        </span>
      )}
      <button type="button" class="quiet icon-only" aria-label="Remove this rule" data-tip="Remove" onClick={onRemove}>
        <Icon name="trash" />
      </button>
      {error !== null && <p class="error">{error}</p>}
    </fieldset>
  );
}
