import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { dismissAnnouncement } from '../state/announcement.ts';
import { readClock } from '../state/clock.ts';
import { dialogCount } from '../state/navigation.ts';
import { Announcer } from './announcer.tsx';

type DialogProps = {
  title: string;
  /** Called when the user presses Escape, or clicks the backdrop without having filled anything in. */
  onDismiss: () => void;
  /** Whether it's an `alertdialog`. Screen readers announce those immediately. */
  isAlert?: boolean;
  isWide?: boolean | 'very';
  /** Text that a screen reader reads together with the title. */
  lead?: ComponentChildren;
  children?: ComponentChildren;
};

/** Shows a native modal dialog. Moves the focus to its `data-autofocus` element, and back when it closes. */
export function Dialog({ title, onDismiss, isAlert = false, isWide = false, lead, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isFilledIn = useRef(false);
  // A layout effect, so that keys pressed right away already go to the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    // The machine may be in another time zone by now.
    readClock();
    dialogCount.value += 1;
    // The announcement would cover the dialog's buttons.
    dismissAnnouncement();
    // Set the attribute only now. If it were set from the start, Chromium would also try to move the focus when the element is inserted,
    // and log a warning.
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
      class={isWide === 'very' ? 'very wide' : isWide ? 'wide' : undefined}
      role={isAlert ? 'alertdialog' : 'dialog'}
      aria-labelledby={titleId}
      aria-describedby={lead ? `${titleId}-lead` : undefined}
      onCancel={dismiss}
      // Chromium closes a dialog on the second Escape even if `cancel` was prevented.
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        // Otherwise, a dialog that contains this one would close as well.
        event.stopPropagation();
        dismiss(event);
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
      {/* While a modal dialog is open, screen readers ignore everything outside it. */}
      <Announcer isHidden />
    </dialog>
  );
}

function isOutside(dialog: HTMLElement, { clientX, clientY }: PointerEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
