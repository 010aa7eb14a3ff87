import { type ComponentChildren, createContext } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { dismissAnnouncement } from '../state/announcement.ts';
import { readClock } from '../state/clock.ts';
import { dialogCount, hasInput } from '../state/navigation.ts';
import { Announcer } from './announcer.tsx';

type DialogProps = {
  title: string;
  /** Called when the user presses Escape or clicks the backdrop. Without it, the dialog stays open. */
  onDismiss?: () => void;
  /** Whether it's an `alertdialog`. Screen readers announce those immediately. */
  isAlert?: boolean;
  isWide?: boolean | 'very';
  /** Text that a screen reader reads together with the title. */
  lead?: ComponentChildren;
  children?: ComponentChildren;
};

/** Tells the dialog around a form whether the form is being submitted. */
export const InDialog = createContext({ isBusy: false });

/** Shows a native modal dialog. Focuses its `data-autofocus` element, and restores the focus later. Asks before input is discarded. */
export function Dialog({ title, onDismiss, isAlert = false, isWide = false, lead, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const form = useRef({ isBusy: false });
  const [isAsking, setAsking] = useState(false);
  const focused = useRef<Element | null>(null);
  // A layout effect, so that keys pressed right away already go to the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    // The machine may be in another time zone by now.
    readClock();
    dialogCount.value += 1;
    // The announcement would cover the dialog's buttons.
    dismissAnnouncement();
    // If it were set from the start, Chromium would also try to move the focus when the element is inserted, and log a warning.
    const first = dialog?.querySelector<HTMLElement>('[data-autofocus]');
    if (first) first.autofocus = true;
    dialog?.showModal();
    return () => {
      dialogCount.value -= 1;
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  function dismiss(event: Event): void {
    event.preventDefault();
    // A sent request can't be taken back.
    if (!onDismiss || form.current.isBusy) return;
    if (!hasInput(ref.current)) onDismiss();
    else if (!isAsking) {
      focused.current = document.activeElement;
      setAsking(true);
    }
  }
  function goBack(): void {
    setAsking(false);
    if (focused.current instanceof HTMLElement) focused.current.focus();
  }
  return (
    <dialog
      ref={ref}
      class={isAsking ? 'asks' : undefined}
      style={{ '--size': isWide === 'very' ? '52rem' : isWide ? '38rem' : '32rem' }}
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
        if (event.target === event.currentTarget && isOutside(event.currentTarget, event)) dismiss(event);
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {lead && <p id={`${titleId}-lead`}>{lead}</p>}
      <InDialog.Provider value={form.current}>{children}</InDialog.Provider>
      {isAsking && onDismiss && (
        <Question title="Discard your input?" verb="Discard" onConfirm={onDismiss} onGoBack={goBack}>
          It hasn’t been saved.
        </Question>
      )}
      {/* While a modal dialog is open, screen readers ignore everything outside it. */}
      <Announcer isHidden />
    </dialog>
  );
}

function isOutside(dialog: HTMLElement, { clientX, clientY }: PointerEvent): boolean {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

type QuestionProps = { title: string; verb: string; onConfirm: () => void; onGoBack: () => void; children: ComponentChildren };

/** Asks before a dialog closes and something is lost. The focus starts on the button that goes back. */
export function Question({ title, verb, onConfirm, onGoBack, children }: QuestionProps) {
  const back = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => back.current?.focus(), []);
  return (
    <div class="box bad stack" role="alert">
      <p>
        <strong>{title}</strong> {children}
      </p>
      <div class="actions">
        <button ref={back} type="button" onClick={onGoBack}>
          Go back
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          {verb}
        </button>
      </div>
    </div>
  );
}

/** Shows the button at the end of a dialog that only says something. @property children other buttons */
export function CloseAction({ label = 'Close', onClose, children }: { label?: string; onClose: () => void; children?: ComponentChildren }) {
  return (
    <div class="actions">
      {children}
      <button type="button" data-autofocus onClick={onClose}>
        {label}
      </button>
    </div>
  );
}
