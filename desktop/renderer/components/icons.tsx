const paths = {
  trash: 'M4 7h16M10 3h4a1 1 0 0 1 1 1v3H9V4a1 1 0 0 1 1-1ZM6 7l1 13a1 1 0 0 0 1 1h8a1 1 0 0 0 1-1l1-13M10 11v6M14 11v6',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1.5 1.5M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.5-1.5',
  key: 'M15 3a6 6 0 1 1-4.6 9.8L3 20v1h4v-2h2v-2h2l1.2-3.2A6 6 0 0 1 15 3ZM16.5 7.5h.01',
  phone: 'M6 3h4l2 5-2.5 1.5a11 11 0 0 0 5 5L16 12l5 2v4a3 3 0 0 1-3 3A15 15 0 0 1 3 6a3 3 0 0 1 3-3Z',
  people: 'M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM2 21a7 7 0 0 1 14 0M16 3.5a4 4 0 0 1 0 7.5M18 15a7 7 0 0 1 4 6',
  folder: 'M3 6a1 1 0 0 1 1-1h5l2 2h9a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1ZM3 11h18',
  shield: 'M12 3l8 3v6c0 4.5-3.2 7.8-8 9-4.8-1.2-8-4.5-8-9V6ZM9 12l2 2 4-4',
  activity: 'M3 12h4l3-8 4 16 3-8h4',
  switch: 'M7 10l5-5 5 5M7 14l5 5 5-5',
  back: 'M15 5l-7 7 7 7',
  forward: 'M9 5l7 7-7 7',
  up: 'M12 20V5M6 11l6-6 6 6',
  down: 'M12 4v15M6 13l6 6 6-6',
  refresh: 'M20 11a8 8 0 1 0-2.3 5.7M20 4v7h-7',
  close: 'M6 6l12 12M18 6L6 18',
  calendar: 'M4 6h16v14H4zM4 10h16M8 3v4M16 3v4',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM16 16l5 5',
} as const;

export type IconName = keyof typeof paths;

/** Hidden from screen readers, because text next to it or a label on its button says the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** Draws the product's mark: a key whose bow is a speech bubble. */
export function MarkIcon() {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
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
