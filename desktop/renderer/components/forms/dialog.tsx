import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { dismissAnnouncement } from '../../state/announcement.ts';
import { readClock } from '../../state/clock.ts';
import { dialogCount } from '../../state/navigation.ts';
import { Announcer } from '../announcer.tsx';

type DialogProps = {
  title: string;
  /** Called on Escape, and on a press on the backdrop while nothing is filled in. */
  onDismiss: () => void;
  /** An `alertdialog`: a screen reader announces it at once. */
  isAlert?: boolean;
  isWide?: boolean;
  /** A screen reader reads it together with the title. */
  lead?: ComponentChildren;
  children?: ComponentChildren;
};

/** A native modal dialog. It moves the focus to its `data-autofocus` element, and back when it closes. */
export function Dialog({ title, onDismiss, isAlert = false, isWide = false, lead, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isFilledIn = useRef(false);
  // A layout effect: keys that are pressed right away already go into the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    // The machine may have been carried to another time zone.
    readClock();
    dialogCount.value += 1;
    // It would cover the dialog's buttons.
    dismissAnnouncement();
    // Not before: Chromium would try to move the focus when the element is inserted, too, and complain that something else has it.
    const first = dialog?.querySelector<HTMLElement>('[data-autofocus]');
    if (first) first.autofocus = true;
    dialog?.showModal();
    return () => {
      dialogCount.value -= 1;
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
      // Chromium closes a dialog at the second Escape even if `cancel` was prevented.
      onKeyDown={(event) => {
        if (event.key === 'Escape') dismiss(event);
      }}
      onPointerDown={(event) => {
        const isOnBackdrop = event.target === event.currentTarget && isOutside(event.currentTarget, event);
        if (isOnBackdrop && !isFilledIn.current) onDismiss();
      }}
      onInput={() => {
        isFilledIn.current = true;
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {lead && <p id={`${titleId}-lead`}>{lead}</p>}
      {children}
      {/* While a modal dialog is open, screen readers ignore what is outside it. */}
      <Announcer isHidden />
    </dialog>
  );
}

function isOutside(dialog: HTMLElement, { clientX, clientY }: PointerEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
