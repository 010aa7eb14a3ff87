import { buildWebConsole } from '../../support/commands.ts';
import { describeUnless, findProgram } from '../../support/suites.ts';
import { commonSizes, testEngine } from './engine.ts';
import { openOver } from './page.ts';
import { startWebKit } from './webkit.ts';

const webDriver = findProgram('WebKitWebDriver');

describeUnless(webDriver === undefined ? "WebKitWebDriver isn't on the PATH" : undefined, 'the screens in WebKit', () => {
  before(buildWebConsole);
  testEngine({ sizes: commonSizes, open: async (url) => openOver(await startWebKit(webDriver ?? ''), url) });
});
