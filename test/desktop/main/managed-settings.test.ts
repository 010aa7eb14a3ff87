import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { managedPaths, readManagedSettings } from '../../../desktop/main/settings.ts';
import { freshDirectory } from '../../support/databases.ts';

describe("the administrator's settings", () => {
  const read = (text: string) => {
    const path = join(freshDirectory(), 'console.json');
    writeFileSync(path, text);
    return readManagedSettings([join(path, 'missing'), path]);
  };

  it('change nothing without a file', () => {
    expect(readManagedSettings(['/nowhere/console.json'])).to.deep.equal({ keepSignedIn: true });
  });

  it('set the server, whether users can stay signed in, and when they are signed out', () => {
    const settings = { server: 'https://calls.example.com/', keepSignedIn: false, signOutAfterMinutes: 15 };
    expect(read(JSON.stringify(settings))).to.deep.equal({ ...settings, server: 'https://calls.example.com' });
  });

  it('can start with a byte order mark, as PowerShell writes it, and write the server in any form', () => {
    expect(read('\uFEFF{"server":"HTTPS://Calls.Example.com:443/"}').server).to.equal('https://calls.example.com');
  });

  for (const [text, reason] of [
    ['{', 'It must be a JSON object.'],
    [
      '{"server":"http://calls.example.com"}',
      'server: Keys and passwords would cross the network unencrypted. Use https://calls.example.com',
    ],
  ] as const)
    it(`say what is wrong: ${text}`, () => expect(() => read(text)).to.throw(`console.json is invalid. ${reason}`));

  for (const text of ['', '[]', '{"keepSignedin":false}', '{"server":"http://calls.example.com"}', '{"signOutAfterMinutes":0}'])
    it(`aren't ignored if they're invalid: ${text}`, () => expect(() => read(text)).to.throw('console.json is invalid'));

  it("are in each system's own folder, and on Linux also in XDG_CONFIG_DIRS, which can't replace those in /etc/xdg", () => {
    expect(managedPaths('linux', {})).to.deep.equal(['/etc/xdg/callkey/console.json']);
    expect(managedPaths('linux', { XDG_CONFIG_DIRS: '/a:relative:/b' })).to.deep.equal([
      '/etc/xdg/callkey/console.json',
      '/a/callkey/console.json',
      '/b/callkey/console.json',
    ]);
    expect(managedPaths('darwin', {})).to.deep.equal(['/Library/Application Support/Callkey/console.json']);
    expect(managedPaths('win32', { ProgramData: 'D:\\Data' })[0]).to.match(/^D:\\Data.Callkey.console\.json$/);
  });
});
