import { useLayoutEffect } from 'preact/hooks';

/** Brings the focus to what has `autofocus`, before anything can be typed. The attribute by itself counts only when a page opens. */
export function useAutofocus(within: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => within.current?.querySelector<HTMLElement>('[autofocus]')?.focus(), [within]);
}
