import '../renderer/no-eval.ts';
import './bridge.ts';
import '../renderer/main.tsx';

// Reloads a page that the browser restores from its cache, because it would show outdated data.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
