import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Announcer } from './announcer.tsx';

export type DialogProps = {
  title: string;
  /** Asked for by Escape and by a press on the backdrop. */
  onDismiss: () => void;
  /** Interrupts: something is about to be lost or done for good. */
  isAlert?: boolean;
  isWide?: boolean;
  /** What it is about, which a screen reader reads together with the title. */
  lead?: ComponentChildren;
  children?: ComponentChildren;
};

/** A native modal dialog. Focus goes into it, to what has `autofocus`, and back to where it was. */
export function Dialog({ title, onDismiss, isAlert = false, isWide = false, lead, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before it is painted: what is typed at once goes into it.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  const dismiss = (event: Event) => {
    event.preventDefault();
    onDismiss();
  };
  return (
    <dialog
      ref={ref}
      class={isWide ? 'wide' : undefined}
      role={isAlert ? 'alertdialog' : 'dialog'}
      aria-labelledby={titleId}
      aria-describedby={lead ? `${titleId}-lead` : undefined}
      onCancel={dismiss}
      // Escape pressed twice would close it all the same.
      onKeyDown={(event) => {
        if (event.key === 'Escape') dismiss(event);
      }}
      onPointerDown={(event) => {
        if (event.target === event.currentTarget && isOutside(event.currentTarget, event)) onDismiss();
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {lead && <p id={`${titleId}-lead`}>{lead}</p>}
      {children}
      {/* A modal dialog leaves out all that is outside of it, for screen readers, too. */}
      <Announcer />
    </dialog>
  );
}

function isOutside(dialog: HTMLElement, { clientX, clientY }: PointerEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
