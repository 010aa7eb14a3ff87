import { DateTime } from 'luxon';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { plusDays } from '#contract/calendar.ts';
import { formatMinutes, toMinutes } from '#contract/protection/calling-hours.ts';
import { dayMinutes, dayProblem, isDay, namedRanges, parseDay, parseTime, type Range, today } from '../state/days.ts';
import { formatIsoDay, formatMonth } from '../state/format.ts';
import { type FieldBinding, FilterSelect } from './form.tsx';
import { Icon } from './icons.tsx';
import { place } from './popovers.tsx';

type TypedInputProps = Partial<FieldBinding> & {
  /** Empty, in the format that the core reads, or what the user has typed if it can't be read. */
  value: string;
  onInput: (value: string) => void;
  /** Its name, unless a field around it has a label. */
  label?: string;
};

type ParsedInputProps = TypedInputProps & {
  class: string;
  parse: (text: string) => string | null;
  format: (value: string) => string;
  /** Returns the next or previous value, for the arrow keys. */
  step: (value: string, by: 1 | -1) => string;
};

/** Shows an input that understands what people type, and then shows it in the screen's own format. Arrow keys change it step by step. */
function ParsedInput({ value, onInput, label, class: className, parse, format, step, ...binding }: ParsedInputProps) {
  // While the user is typing, the text stays as they typed it.
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <input
      {...binding}
      class={className}
      type="text"
      autocomplete="off"
      spellcheck={false}
      aria-label={label}
      value={typed ?? format(value)}
      onInput={({ currentTarget: { value: text } }) => {
        setTyped(text);
        onInput(parse(text) ?? text.trim());
      }}
      onBlur={() => setTyped(null)}
      onKeyDown={(event) => {
        const { key, altKey, currentTarget } = event;
        if (altKey || (key !== 'ArrowUp' && key !== 'ArrowDown')) return;
        event.preventDefault();
        type(currentTarget, format(step(value, key === 'ArrowUp' ? 1 : -1)));
      }}
    />
  );
}

/** Enters a text as if the user had typed it, so that a form notices it. */
function type(input: HTMLInputElement, text: string): void {
  input.value = text;
  input.dispatchEvent(new Event('input', { bubbles: true }));
}

export function TimeInput(props: TypedInputProps) {
  return (
    <ParsedInput
      {...props}
      class="time"
      parse={parseTime}
      format={(value) => value}
      step={(value, by) => formatMinutes((toMinutes(parseTime(value) ?? '09:00') + by * 15 + dayMinutes) % dayMinutes)}
    />
  );
}

type DayInputProps = TypedInputProps & { min?: string; max?: string };

/** Shows an input for a day: "31 Jan 2027". A button, or Alt with the down arrow, opens a calendar. */
export function DayInput({ min = '', max = '', ...input }: DayInputProps) {
  const [isOpen, setOpen] = useState(false);
  const ref = useRef<HTMLSpanElement>(null);
  // A press on the button closes the calendar before the click.
  const wasOpen = useRef(false);
  const first = isDay(input.value) ? input.value : min > today() ? min : today();
  function close(chosen?: string): void {
    setOpen(false);
    const element = ref.current?.querySelector('input');
    element?.focus();
    if (element && chosen !== undefined) type(element, formatIsoDay(chosen));
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The key opens the calendar, as the button does.
    <span
      ref={ref}
      class="date"
      onKeyDown={(event) => {
        if (!event.altKey || event.key !== 'ArrowDown') return;
        event.preventDefault();
        setOpen(true);
      }}
    >
      <ParsedInput
        {...input}
        class="day"
        parse={(typed) => parseDay(typed, min)}
        format={(value) => (isDay(value) ? formatIsoDay(value) : value)}
        step={(value, by) => (isDay(value) ? plusDays(value, by) : first)}
      />
      <button
        type="button"
        class="quiet icon-only"
        aria-label="Open calendar"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onPointerDown={() => {
          wasOpen.current = isOpen;
        }}
        onClick={() => {
          setOpen(!wasOpen.current);
          wasOpen.current = false;
        }}
      >
        <Icon name="calendar" />
      </button>
      {isOpen && (
        <Calendar
          around={ref.current}
          first={first}
          chosen={input.value}
          min={min}
          max={max}
          onChoose={close}
          onClose={close}
          onLeave={() => setOpen(false)}
        />
      )}
    </span>
  );
}

type CalendarProps = {
  around: HTMLElement | null;
  /** The day that has the focus at first. */
  first: string;
  /** The day that the input has, if it has one. */
  chosen: string;
  min: string;
  max: string;
  onChoose: (day: string) => void;
  /** Called if the user goes back to the input. */
  onClose: () => void;
  /** Called if the user clicks outside. */
  onLeave: () => void;
};

const weekdayNames = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const weekday = (day: string) => (new Date(day).getUTCDay() + 6) % 7;

/** Returns the same day of another month, or its last day if it's shorter. */
function plusMonths(day: string, months: number): string {
  return DateTime.fromISO(day, { zone: 'utc' }).plus({ months }).toFormat('yyyy-MM-dd');
}

/** Returns the day to which a key moves (ARIA APG, date picker dialog). */
function move(day: string, key: string, isShift: boolean): string | null {
  const days = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7, Home: -weekday(day), End: 6 - weekday(day) }[key];
  if (days !== undefined) return plusDays(day, days);
  const months = { PageUp: -1, PageDown: 1 }[key];
  return months === undefined ? null : plusMonths(day, months * (isShift ? 12 : 1));
}

function Calendar({ around, first, chosen, min, max, onChoose, onClose, onLeave }: CalendarProps) {
  const [active, setActive] = useState(first);
  const ref = useRef<HTMLDivElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const popover = ref.current;
    if (!popover || !around) return;
    popover.showPopover();
    place(popover, around, 'below');
  }, []);
  const hasMoved = useRef(true);
  useLayoutEffect(() => {
    if (hasMoved.current) ref.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, [active]);
  const isPossible = (each: string) => (min === '' || each >= min) && (max === '' || each <= max);
  const go = (to: string, focuses: boolean) => {
    hasMoved.current = focuses;
    setActive(min !== '' && to < min ? min : max !== '' && to > max ? max : to);
  };
  const month = active.slice(0, 7);
  const start = plusDays(`${month}-01`, -weekday(`${month}-01`));
  const weeks = Array.from({ length: 6 }, (_, week) => Array.from({ length: 7 }, (_, each) => plusDays(start, week * 7 + each)));
  const turn = (label: string, icon: 'back' | 'forward', months: number) => (
    <button type="button" class="quiet icon-only" aria-label={label} onClick={() => go(plusMonths(active, months), false)}>
      <Icon name={icon} />
    </button>
  );
  return (
    <div
      ref={ref}
      class="calendar"
      popover="auto"
      role="dialog"
      aria-label="Calendar"
      onToggle={({ newState }) => {
        if (newState === 'closed') onLeave();
      }}
      onKeyDown={(event) => {
        // Otherwise, a dialog around it would close, too.
        event.stopPropagation();
        const isInGrid = event.target instanceof Element && event.target.closest('table');
        const to = isInGrid ? move(active, event.key, event.shiftKey) : null;
        if (event.key === 'Escape') onClose();
        else if (to !== null) go(to, true);
        else return;
        event.preventDefault();
      }}
    >
      <div class="row between label-row">
        {turn('Previous month', 'back', -1)}
        <strong id={titleId} aria-live="polite">
          {formatMonth(active)}
        </strong>
        {turn('Next month', 'forward', 1)}
      </div>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: A table may be a grid (ARIA in HTML).
        role="grid"
        aria-labelledby={titleId}
      >
        <thead>
          <tr>
            {weekdayNames.map((name) => (
              <th key={name} scope="col" abbr={name}>
                {name.slice(0, 2)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks
            .filter((week) => week.some((each) => each.startsWith(month)))
            .map((week) => (
              <tr key={week[0]}>
                {week.map((each) => (
                  <td key={each}>
                    {each.startsWith(month) && (
                      <button
                        type="button"
                        class="quiet"
                        tabIndex={each === active ? 0 : -1}
                        aria-label={formatIsoDay(each)}
                        aria-pressed={each === chosen}
                        aria-current={each === today() ? 'date' : undefined}
                        aria-disabled={!isPossible(each)}
                        onClick={() => isPossible(each) && onChoose(each)}
                      >
                        {Number(each.slice(8))}
                      </button>
                    )}
                  </td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}

type DayRangeProps = Range & {
  /** What it means to have chosen nothing: "Any day". */
  any?: string;
  onChange: (range: Range) => void;
};

const custom = 'Custom…';

/** Shows a filter for days: a range with a name, a single day, or a range of the user's own. If one end is moved past the other, both move. */
export function DayRange({ from, to, any = 'Any day', onChange }: DayRangeProps) {
  const ranges = [[any, { from: '', to: '' }] as const, ...namedRanges()];
  const named = ranges.find(([, range]) => range.from === from && range.to === to)?.[0];
  const [isCustom, setCustom] = useState(named === undefined);
  const isOpen = isCustom || named === undefined;
  return (
    <div class="row day-range">
      <FilterSelect
        label="Days"
        value={isOpen ? custom : named}
        options={[...ranges.map(([name]) => [name, name] as const), [custom, custom] as const]}
        onChange={(name) => {
          setCustom(name === custom);
          const range = ranges.find(([each]) => each === name)?.[1];
          if (range) onChange(range);
        }}
      />
      {isOpen && (
        <>
          <RangeEnd label="From day" value={from} onChange={(day) => onChange({ from: day, to: to !== '' && day > to ? day : to })} />
          <span aria-hidden="true">–</span>
          <RangeEnd label="To day" value={to} onChange={(day) => onChange({ from: day !== '' && day < from ? day : from, to: day })} />
        </>
      )}
    </div>
  );
}

/** Shows one end of a range. What can't be read isn't passed on, but marked once the user leaves the input. */
function RangeEnd({ label, value, onChange }: { label: string; value: string; onChange: (day: string) => void }) {
  const id = useId();
  const [unread, setUnread] = useState('');
  const [hasLeft, setLeft] = useState(false);
  const isWrong = unread !== '' && hasLeft;
  return (
    <span onFocusOut={() => setLeft(true)}>
      <DayInput
        label={label}
        value={unread === '' ? value : unread}
        aria-invalid={isWrong ? 'true' : undefined}
        aria-describedby={isWrong ? id : undefined}
        onInput={(typed) => {
          const isReadable = typed === '' || isDay(typed);
          setLeft(false);
          setUnread(isReadable ? '' : typed);
          if (isReadable) onChange(typed);
        }}
      />
      {isWrong && (
        <span id={id} class="error" role="alert">
          {dayProblem}
        </span>
      )}
    </span>
  );
}
