import { signal } from '@preact/signals';
import { formatMembership, userTypeLabels } from '../state/format/labels.ts';
import { session } from '../state/session.ts';

/** The ID of the viewer who has closed the notice. */
const closedBy = signal<string | null>(null);

/**
 * Tells someone who has just been linked which account they're in. They were recognized by email address alone, and may not know the
 * account that someone has created with that address.
 */
export function NewLinkNotice() {
  const { viewer, signedInWith, justLinked } = session.value ?? {};
  if (!viewer || !justLinked || closedBy.value === viewer.id) return null;
  const facts = [userTypeLabels[viewer.userType], formatMembership(viewer)].filter((text) => text !== '');
  return (
    <div class="banner" role="status">
      <p>
        You’ve signed in with {signedInWith} for the first time. You’re now <bdi>{viewer.name}</bdi> (<bdi>{viewer.email}</bdi>,{' '}
        <bdi>{facts.join(', ')}</bdi>). If this isn’t your account, sign out and tell your administrator.
      </p>
      <button
        type="button"
        onClick={() => {
          closedBy.value = viewer.id;
        }}
      >
        This is me
      </button>
    </div>
  );
}
