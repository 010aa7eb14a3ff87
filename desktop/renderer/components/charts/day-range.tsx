type DayRangeProps = { from: string; to: string; onChange: (range: { from: string; to: string }) => void };

/**
 * Shows the first and last day of a filter, in the format of date inputs: "2026-11-21". Moving one past the other moves both.
 */
export function DayRange({ from, to, onChange }: DayRangeProps) {
  return (
    <div class="day-range">
      <label>
        <span>
          From<span class="visually-hidden"> day</span>
        </span>
        <input
          class="compact"
          type="date"
          value={from}
          onInput={({ currentTarget: { value } }) => onChange({ from: value, to: to !== '' && value > to ? value : to })}
        />
      </label>
      <label>
        <span>
          To<span class="visually-hidden"> day</span>
        </span>
        <input
          class="compact"
          type="date"
          value={to}
          onInput={({ currentTarget: { value } }) => onChange({ from: value !== '' && value < from ? value : from, to: value })}
        />
      </label>
    </div>
  );
}
