import './no-eval.ts';
import { render } from 'preact';
import { App } from './app.tsx';
import { startClock } from './state/clock.ts';
import { offerCommands } from './state/commands.ts';

startClock();
offerCommands();
render(<App />, document.body);
