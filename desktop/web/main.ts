import '../renderer/no-eval.ts';
import './install-bridge.ts';
import '../renderer/main.tsx';
import { followAddresses } from './addresses.ts';

followAddresses();
// A page that the browser has kept after leaving it shows what was true then.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});
