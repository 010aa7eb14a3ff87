import type { ComponentChildren } from 'preact';

/** Shows text on one line, isolated from the direction of the text around it. If it doesn't fit, a tooltip shows it in full. */
export function Clip({ children, class: more = '' }: { children: ComponentChildren; class?: string }) {
  return (
    <bdi class={`clip ${more}`} data-clip tabIndex={-1}>
      {children}
    </bdi>
  );
}
