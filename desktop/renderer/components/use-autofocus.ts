import { useLayoutEffect } from 'preact/hooks';

/** Focuses the `autofocus` element of a part that appears later: browsers honour the attribute only when a page or a dialog opens. */
export function useAutofocus(within: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => within.current?.querySelector<HTMLElement>('[autofocus]')?.focus(), [within]);
}
