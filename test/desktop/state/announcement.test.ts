import { mock } from 'node:test';
import { expect } from 'chai';
import { announce, announcement, dismissAnnouncement, warn, warning } from '../../../desktop/renderer/state/announcement.ts';

describe('an announcement', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('disappears after six seconds, even if it replaced another', () => {
    announce('First.');
    mock.timers.tick(5_000);
    announce('Second.');
    mock.timers.tick(5_999);
    expect(announcement.value).to.equal('Second.');
    mock.timers.tick(1);
    expect(announcement.value).to.equal('');
  });

  it("of something that failed stays until it's dismissed", () => {
    warn('Couldn’t save the file.');
    announce('Copied.');
    mock.timers.tick(60_000);
    expect([announcement.value, warning.value]).to.deep.equal(['', 'Couldn’t save the file.']);
    dismissAnnouncement();
    expect(warning.value).to.equal('');
  });
});
