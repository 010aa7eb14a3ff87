import { buildWebConsole } from '../../support/commands.ts';
import { describeUnless, findProgram } from '../../support/suites.ts';
import { testEngine } from './engine.ts';
import { startFirefox } from './firefox.ts';
import { openOver } from './page.ts';

const { FIREFOX_PATH } = process.env;
const executablePath = FIREFOX_PATH ? findProgram(FIREFOX_PATH) : findProgram('firefox-esr', 'firefox');

describeUnless(
  executablePath === undefined ? 'Firefox is neither on the PATH nor at FIREFOX_PATH' : undefined,
  'the screens in Firefox',
  () => {
    before(buildWebConsole);
    testEngine({ open: async (url) => openOver(await startFirefox(executablePath ?? ''), url) });
  },
);
