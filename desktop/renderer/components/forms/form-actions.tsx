type FormActionsProps = {
  /** The submit button's text, and its text while the action runs. */
  verb: string;
  verbing?: string;
  isDanger?: boolean;
  isBusy: boolean;
  /** The other button's text. */
  cancel?: string;
  onCancel: () => void;
};

/** Shows the buttons at the end of a form. */
export function FormActions({ verb, verbing = verb, isDanger = false, isBusy, cancel = 'Cancel', onCancel }: FormActionsProps) {
  return (
    <div class="actions">
      <button type="button" aria-disabled={isBusy} onClick={onCancel}>
        {cancel}
      </button>
      <button type="submit" class={isDanger ? 'danger' : 'primary'} aria-disabled={isBusy}>
        {isBusy ? verbing : verb}
      </button>
    </div>
  );
}
