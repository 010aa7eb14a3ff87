import { computed, signal } from '@preact/signals';
import { DateTime } from 'luxon';

/** The current time, every second. Everything that shows a relative time reads it. */
export const now = signal(DateTime.now());

const tickMs = 1_000;
setInterval(() => {
  now.value = DateTime.now();
}, tickMs);

const minuteMs = computed(() => now.value.startOf('minute').toMillis());

/** The current minute, for what is too costly to compute every second. It changes at midnight, too. */
export const minute = computed(() => DateTime.fromMillis(minuteMs.value));
