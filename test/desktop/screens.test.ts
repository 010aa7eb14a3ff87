import { expect } from 'chai';
import { userTypes } from '#contract/console/common.ts';
import { commands } from '../../desktop/ipc.ts';
import { isShowCommand, screens, screensFor, showCommand } from '../../desktop/screens.ts';

describe('the screens', () => {
  for (const property of ['name', 'label', 'icon'] as const) {
    it(`each have a unique ${property}`, () => {
      expect(new Set(screens.map((screen) => screen[property])).size).to.equal(screens.length);
    });
  }

  it('each have a menu command', () => {
    const own = screens.map(({ name }) => showCommand(name));
    expect(commands).to.include.members(own);
    expect(commands.filter(isShowCommand)).to.deep.equal(own);
  });

  for (const userType of userTypes) {
    it(`have the same home screen for all ${userType} users`, () => {
      expect(screensFor({ userType, account: null })[0]).to.equal(screens[0]);
    });
  }

  it("exclude Users for account users, who can't manage users", () => {
    const names = screensFor({ userType: 'account', account: { id: 'a1', name: 'A' } }).map(({ name }) => name);
    expect(names).not.to.include('users');
  });

  it('exclude Directory for a partner user who is limited to one account', () => {
    const namesFor = (account: { id: string; name: string } | null) => screensFor({ userType: 'partner', account }).map(({ name }) => name);
    expect(namesFor(null)).to.include('directory');
    expect(namesFor({ id: 'a1', name: 'A' })).not.to.include('directory');
  });
});
