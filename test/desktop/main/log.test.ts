import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { log, openLog, readLog } from '../../../desktop/main/log.ts';
import { freshDirectory } from '../../support/databases.ts';

describe("the app's log", () => {
  it("doesn't keep the app from starting if it can't be written", () => {
    const folder = freshDirectory();
    writeFileSync(join(folder, 'logs'), '');
    openLog(folder);
    log('started');
    expect(readLog(1)).to.equal('');
  });
});
