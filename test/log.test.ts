import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { createLog } from '../core/server/start/log.ts';

describe('the log', () => {
  const keyValue = makeKeyValue(randomBytes);
  const formatLine = (fields: object, message: string): string => {
    let text = '';
    const destination = new Writable({
      write(chunk, _encoding, done) {
        text += String(chunk);
        done();
      },
    });
    createLog('info', destination).info(fields, message);
    return text;
  };

  const places: [string, object, string][] = [
    ["an error's message", { err: new Error(`No such key: ${keyValue}`) }, 'failed'],
    ["an error's cause", { err: new Error('failed', { cause: new Error(keyValue) }) }, 'failed'],
    ["an error's code", { err: Object.assign(new Error('failed'), { code: keyValue }) }, 'failed'],
    ['a field', { path: `/?key=${keyValue}` }, 'request'],
    ['the log message', {}, `Got ${keyValue}.`],
  ];
  for (const [where, fields, message] of places) {
    it(`redacts a key value in ${where}`, () => {
      const line = formatLine(fields, message);
      expect(line).to.contain('svc_sk_live_[redacted]');
      expect(line).not.to.contain(keyValue.slice(12));
    });
  }

  it('omits the details that libraries attach to errors, such as the parameters of a statement', () => {
    expect(formatLine({ err: Object.assign(new Error('failed'), { parameters: ['secret'] }) }, 'failed')).not.to.contain('secret');
  });
});
