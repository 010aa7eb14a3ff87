type DayRangeProps = { from: string; to: string; onChange: (range: { from: string; to: string }) => void };

/**
 * The first and last day of a filter in date input format: "2026-11-21". If the first would be after the last, the other one moves
 * along.
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
