import { useState } from 'preact/hooks';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { CallingHoursView } from '#contract/protection/protection.ts';
import { Empty, Loadable, useFreshResource } from '../../../components/loadable.tsx';
import { Page } from '../../../components/page.tsx';
import { announce } from '../../../state/announcement.ts';
import { ScopeSelect } from '../scope-select.tsx';
import type { TabProps } from '../tab-props.ts';
import { useScope, withName } from '../use-scope.ts';
import { EditHours } from './edit-hours.tsx';
import { dayLabels, describeDates, describePrefixes, formatWindows, leavesNumbersOpen, toWeeks, type Week, type Window } from './week.ts';

/** Shows the week in which people may be called, including hours that the scope inherits. */
export function CallingHours({ title, home, canChange, view, onView, tabs, check }: TabProps) {
  const { scope: chosen, choose } = useScope(home, view, onView);
  const resource = useFreshResource<CallingHoursView>(`hours/${chosen.kind}/${chosen.id}`, () =>
    window.callkey.request('showCallingHours', { scope: chosen.kind, id: chosen.id }),
  );
  const [isEditing, setEditing] = useState(false);
  const hours = resource.state.value.value;
  const scope = withName(chosen, hours);
  return (
    <>
      <Page
        title={title}
        actions={
          <>
            {check}
            {canChange && hours && (
              <button type="button" class="primary" onClick={() => setEditing(true)}>
                {hours.rules.length === 0 ? 'Set hours…' : 'Change hours…'}
              </button>
            )}
          </>
        }
        head={
          <>
            {tabs}
            <div class="toolbar">
              <ScopeSelect home={home} kinds={['partner', 'account', 'campaign']} chosen={scope} onChoose={choose} />
            </div>
          </>
        }
        resource={resource}
        foot={<span>Calling hours use the time zone of the person being called.</span>}
      >
        <Loadable resource={resource} noun="calling hours" isInPage>
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
        </Loadable>
      </Page>
      {isEditing && hours && (
        <EditHours
          scope={scope}
          hours={hours}
          resource={resource}
          onSaved={(saved) => {
            setEditing(false);
            resource.change(saved);
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
