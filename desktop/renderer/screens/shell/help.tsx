import type { SessionView } from '#contract/console/session.ts';
import { Dialog } from '../../components/forms/dialog.tsx';
import { Field } from '../../components/forms/field.tsx';
import { type Theme, theme, themes } from '../../state/preferences.ts';
import { describeVersions } from '../../state/versions.ts';
import { ReferenceLink } from '../api-keys/reference-link.tsx';

const isMac = navigator.userAgent.includes('Mac OS');

const shortcuts: readonly (readonly [string, string])[] = [
  [isMac ? '⌘K' : 'Ctrl K', 'Go to a screen, key, user, or campaign'],
  ['/', 'Search the list'],
  ['↓ ↑ or j k', 'Next or previous row'],
  ['← →', 'Move within a row'],
  ['Enter', 'Open details'],
  ['Space', 'Select a row'],
  ['Delete', 'Revoke the key, or delete the user'],
  ['Esc', 'Close details or a dialog'],
  ['?', 'Show this help'],
];

const themeLabels: Readonly<Record<Theme, string>> = { system: 'System', light: 'Light', dark: 'Dark' };

/** Shows the shortcuts, the documentation, and the choice of colors. */
export function Help({ session, onClose }: { session: SessionView; onClose: () => void }) {
  return (
    <Dialog title="Help" onDismiss={onClose}>
      <dl class="facts">
        {shortcuts.map(([keys, what]) => (
          <>
            <dt key={`${keys}-keys`}>
              <kbd>{keys}</kbd>
            </dt>
            <dd key={keys}>{what}</dd>
          </>
        ))}
      </dl>
      <p>
        <ReferenceLink verb="explains how to place calls." />
      </p>
      <Field label="Colors">
        {(binding) => (
          <select
            {...binding}
            value={theme.value}
            onChange={({ currentTarget }) => {
              theme.value = themes.find((name) => name === currentTarget.value) ?? 'system';
            }}
          >
            {themes.map((name) => (
              <option key={name} value={name}>
                {themeLabels[name]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <p class="hint">{describeVersions(session.version)}</p>
      <div class="actions">
        <button type="button" onClick={onClose} data-autofocus>
          Close
        </button>
      </div>
    </Dialog>
  );
}
