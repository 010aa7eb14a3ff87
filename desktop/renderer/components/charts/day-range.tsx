import { useState } from 'preact/hooks';

type DayRangeProps = { from: string; to: string; onChange: (range: { from: string; to: string }) => void };

/** Shows the first and last day of a filter, in the format of date inputs: "2026-11-21". If one is moved past the other, both move. */
export function DayRange({ from, to, onChange }: DayRangeProps) {
  // Keeps what the user is typing until the year is complete. Otherwise, the list would reload, and the other day would move.
  const [typed, setTyped] = useState<{ end: 'from' | 'to'; value: string } | null>(null);
  const change = (end: 'from' | 'to', value: string, range: { from: string; to: string }) => {
    const isIncomplete = isYearIncomplete(value);
    setTyped(isIncomplete ? { end, value } : null);
    if (!isIncomplete) onChange(range);
  };
  return (
    <div class="day-range">
      <label>
        <span>
          From<span class="visually-hidden"> day</span>
        </span>
        <input
          class="compact"
          type="date"
          value={typed?.end === 'from' ? typed.value : from}
          onInput={({ currentTarget: { value } }) => change('from', value, { from: value, to: to !== '' && value > to ? value : to })}
        />
      </label>
      <label>
        <span>
          To<span class="visually-hidden"> day</span>
        </span>
        <input
          class="compact"
          type="date"
          value={typed?.end === 'to' ? typed.value : to}
          onInput={({ currentTarget: { value } }) => change('to', value, { from: value !== '' && value < from ? value : from, to: value })}
        />
      </label>
    </div>
  );
}

/** While the user types 2026, the input reports the years 2, 20 and 202. */
function isYearIncomplete(day: string): boolean {
  return day !== '' && day < '1970';
}
