import '../renderer/no-eval.ts';
import './bridge.ts';
import '../renderer/main.tsx';
import { filledForms } from '../renderer/state/navigation.ts';
import { session } from '../renderer/state/session.ts';

// Asks before unsent input is lost.
addEventListener('beforeunload', (event) => {
  if (session.peek() && filledForms.size > 0) event.preventDefault();
});

// Reloads a page that the browser restores from its cache, because it would show outdated data.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
