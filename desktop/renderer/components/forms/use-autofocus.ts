import { useLayoutEffect } from 'preact/hooks';

/**
 * Focuses the `data-autofocus` element of a part of the page that appears later. Browsers honor `autofocus` only when a page or dialog
 * opens.
 */
export function useAutofocus(within: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => within.current?.querySelector<HTMLElement>('[data-autofocus]')?.focus(), [within]);
}
