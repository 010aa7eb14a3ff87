/** Draws the product's mark: a key whose bow is a speech bubble. */
export function MarkIcon() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d="M15 2.5a6.5 6.5 0 1 1-5 10.6L3.5 19.6v1.9h4v-2h2v-2h2l1.4-3.2A6.5 6.5 0 0 1 15 2.5Z" />
      <path d="M12.7 8.2v1.6M15 6.7v4.6M17.3 8.2v1.6" />
    </svg>
  );
}

export function Mark() {
  return (
    <div class="mark">
      <MarkIcon />
      <span>Callkey</span>
    </div>
  );
}
