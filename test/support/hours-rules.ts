import { type HoursRule, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';

const workdays = weekdays.slice(0, 5);

export function rule(prefix: string, from: string, to: string, days: readonly Weekday[] = workdays): HoursRule {
  return { prefix, days: [...days], from, to };
}

export const daily = (from: string, to: string, prefix = '') => rule(prefix, from, to, weekdays);
