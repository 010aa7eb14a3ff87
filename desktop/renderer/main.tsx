import './no-eval.ts';
import { render } from 'preact';
import { App } from './app.tsx';
import { followAddresses } from './state/addresses.ts';
import { startClock } from './state/clock.ts';
import { leaveKeysToInputMethods, offerCommands } from './state/commands.ts';
import { followTheme } from './state/remembered.ts';
import { followServerMark } from './state/server-marks.ts';
import { followTenancy } from './state/session.ts';

leaveKeysToInputMethods();
followTheme();
startClock();
offerCommands();
followAddresses();
followTenancy();
followServerMark();
render(<App />, document.body);
