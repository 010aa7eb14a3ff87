import '../renderer/no-eval.ts';
import './install-bridge.ts';
import '../renderer/main.tsx';

// When a browser restores a page from its cache, the page shows outdated data, so it reloads.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
