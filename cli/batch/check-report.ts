import { counted, formatCount } from '#contract/text/count.ts';
import { CallkeyError } from '../client/errors.ts';
import type { Output, Streams } from '../terminal/output.ts';
import { type CallFile, type CheckedFile, type CheckReport, checkCalls, type InvalidLine } from './file/call-file.ts';
import { type Counter, createCounter } from './progress.ts';

/** A terminal shows only this many lines, because no one reads more. The results contain all of them. */
const maxNotes = 100;

type Reporting = { output: Output; streams: Streams };

/**
 * Checks a whole file and reports what it finds. @throws CallkeyError `usage` if lines are invalid, unless --skip-invalid is set and some
 * lines are valid
 */
export async function checkFile({ output, streams }: Reporting, file: CallFile, skipInvalid: boolean): Promise<CheckedFile> {
  const counter = createCounter(streams.stderr, 'Checking');
  const report = createCheckReport(output, counter);
  const checked = await checkCalls(file, report).finally(counter.clear);
  report.end();
  rejectInvalidLines(output, file, checked, skipInvalid);
  return checked;
}

function createCheckReport(output: Output, counter: Counter): CheckReport & { end(): void } {
  let [bad, duplicates] = [0, 0];
  const note = (text: string) => {
    counter.clear();
    output.note(text);
  };
  return {
    line: counter.line,
    invalidLine(row) {
      if (output.forPrograms) output.result({ line: row.line, status: 'invalid', errors: row.errors });
      if (++bad <= maxNotes) note(formatInvalidLine(row));
    },
    duplicateNumber(line, earlier) {
      if (++duplicates <= maxNotes) note(`line ${line}: warning: same phone number as line ${earlier}. It will be called again.`);
    },
    end() {
      if (bad > maxNotes) output.note(`Not shown: ${counted(bad - maxNotes, 'more invalid line')}. To see them all, add --json.`);
      if (duplicates > 0)
        output.note(`Warning: ${counted(duplicates, 'line')} with the same phone number as an earlier line. Each one is a separate call.`);
    },
  };
}

function formatInvalidLine({ line, errors }: InvalidLine): string {
  return `line ${line}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ')}`;
}

function rejectInvalidLines(output: Output, { name }: CallFile, { good, bad }: CheckedFile, skipInvalid: boolean): void {
  if (bad.size === 0) return;
  const count = `${formatCount(bad.size)} of ${counted(good + bad.size, 'line')} in ${name} ${bad.size === 1 ? 'is' : 'are'} invalid.`;
  if (good === 0) throw new CallkeyError('usage', `${count} Nothing was sent. Fix them and run the command again.`, { code: 'invalid' });
  if (!skipInvalid) {
    throw new CallkeyError('usage', `${count} Nothing was sent. Fix them, or add --skip-invalid to place the others.`, {
      code: 'invalid',
    });
  }
  output.note(`${count} Skipping them.`);
}
