import { signal } from '@preact/signals';

/** While the page is printed, lists show all of their rows. */
export const isPrinting = signal(false);

addEventListener('beforeprint', () => {
  isPrinting.value = true;
});
addEventListener('afterprint', () => {
  isPrinting.value = false;
});
