import type { ComponentChildren } from 'preact';

/** Text on one line, isolated from what is around it. Where it does not fit, a tooltip shows all of it. */
export function Clip({ children, class: more = '' }: { children: ComponentChildren; class?: string }) {
  return (
    <bdi class={`clip ${more}`} data-clip tabIndex={-1}>
      {children}
    </bdi>
  );
}
