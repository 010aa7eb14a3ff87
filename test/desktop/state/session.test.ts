import { expect } from 'chai';
import type { SessionView } from '#contract/console/session.ts';
import type { Bridge, Failure, Result, StartupState } from '../../../desktop/ipc.ts';
import { describeUpdate, describeVersions } from '../../../desktop/renderer/state/server-marks.ts';
import * as state from '../../../desktop/renderer/state/session.ts';

const tenancy = { kind: 'account', id: 'a1', name: 'Blue Clinic', partnerName: 'Northwind Voice' } as const;
const view = (changes: Partial<SessionView> = {}): SessionView => ({
  viewer: { id: 'u1', name: 'Sam Staff', email: 'sam@example.com', userType: 'staff', account: null, partner: null },
  ...{ tenancy: null, secondFactor: false, dialer: 'off', reference: true, version: '0.9.0' },
  ...changes,
});
const done = <Value>(value: Value): Result<Value> => ({ ok: true, value });
const failed = (failure: Failure): Result<never> => ({ ok: false, failure });
const unreachable: Failure = { kind: 'unreachable', detail: 'Nothing listens.' };
const startup = (session: StartupState['session']): StartupState => ({
  remembered: { server: 'https://calls.example.com', email: 'sam@example.com' },
  persistence: { possible: true },
  notice: null,
  appVersion: '0.9.0',
  session,
  signInResult: null,
});

/** Replaces the preload script. */
function bridge(functions: Partial<Record<keyof Bridge, unknown>>): void {
  Object.assign(globalThis, { window: { callkey: { cancelSignIn: async () => undefined, ...functions } } });
}

describe("the page's session", () => {
  beforeEach(() => {
    bridge({});
    state.leave();
  });
  after(() => Reflect.deleteProperty(globalThis, 'window'));

  it("asks for an update of the app only if the server's version is later", async () => {
    bridge({ getStartupState: async () => startup(null) });
    await state.loadStartupState();
    const later = ['0.9.1', '0.10.0', '1.0.0', '1.0.0-beta.1'];
    expect(['0.9.0', '0.8.9', 'odd', undefined, ...later].filter((core) => describeUpdate(core) !== null)).to.deep.equal(later);
    expect(describeUpdate('0.10.0')).to.equal('Update this app from 0.9.0 to 0.10.0, your server’s version.');
    expect(describeVersions('0.10.0')).to.equal('App 0.9.0 · Server 0.10.0');
  });

  const withProvider = { server: 'https://calls.example.com', keepSignedIn: null, staysOnPage: true };
  for (const [how, signIn] of [
    ['', () => state.signInAgain('secret')],
    [' with the provider', () => state.signInWithProvider(withProvider)],
  ] as const) {
    it(`selects the same tenancy when the user signs in again${how}`, async () => {
      state.setSession(view({ tenancy }));
      const signedIn = async () => done(view());
      bridge({ signIn: signedIn, signInWithProvider: signedIn, request: async () => done(view({ tenancy })) });
      expect((await signIn()).ok).to.equal(true);
      expect(state.session.value?.tenancy).to.deep.equal(tenancy);
    });
  }

  it("is another user's if that user signs in again", async () => {
    const other = view({ viewer: { ...view().viewer, id: 'u2' } });
    state.setSession(view({ tenancy }));
    bridge({ signInWithProvider: async () => done(other) });
    await state.signInWithProvider(withProvider);
    expect(state.session.value).to.deep.equal(other);
  });

  it("stays ended if the tenancy can't be selected again, because another tenancy would replace the screen", async () => {
    state.setSession(view({ tenancy }));
    await state.handleSessionFailure(Promise.resolve(failed({ kind: 'session-ended' })));
    bridge({ signIn: async () => done(view()), request: async () => failed(unreachable) });
    expect(await state.signInAgain('secret')).to.deep.equal(failed(unreachable));
    expect(state.trouble.value).to.have.property('kind', 'session-ended');
    expect(state.session.value?.tenancy).to.deep.equal(tenancy);
  });

  for (const [what, answer, shown] of [
    ['starts from the stored session', done(view()), { session: view(), trouble: null }],
    [
      'shows the sign-in form instead of an error if the stored session has ended',
      failed({ kind: 'session-ended' }),
      { session: null, trouble: null },
    ],
    ["says why the stored session's core doesn't respond", failed(unreachable), { session: null, trouble: unreachable }],
  ] as const) {
    it(what, async () => {
      bridge({ getStartupState: async () => startup(answer) });
      await state.loadStartupState();
      expect({ session: state.session.value, trouble: state.trouble.value }).to.deep.equal(shown);
      expect(state.startupState.value).not.to.equal(null);
    });
  }

  it('ignores the stored session after the user has continued to the sign-in form', async () => {
    const answer = Promise.withResolvers<StartupState>();
    bridge({ getStartupState: () => answer.promise });
    const loading = state.loadStartupState();
    state.leave();
    answer.resolve(startup(done(view())));
    await loading;
    expect(state.session.value).to.equal(null);
  });

  it('can start, but is not stored, if the settings are unreadable', async () => {
    bridge({ getStartupState: () => Promise.reject(new Error('unreadable')) });
    await state.loadStartupState();
    expect(state.startupState.value?.persistence).to.have.property('possible', false);
    expect(state.trouble.value).to.equal(null);
  });

  for (const [way, leave] of [
    ['switches to another server', () => state.switchServer('https://other.example.com')],
    ['adds a server', state.addServer],
    ['signs out', state.signOut],
    ['discards the session', state.leave],
  ] as const) {
    it(`cancels a sign-in in progress when the user ${way}`, async () => {
      const calls: string[] = [];
      const record = (name: string) => async () => {
        calls.push(name);
        return done(null);
      };
      bridge({
        cancelSignIn: record('cancelSignIn'),
        selectServer: record('selectServer'),
        signOut: record('signOut'),
        getStartupState: async () => startup(null),
      });
      await leave();
      expect(calls[0]).to.equal('cancelSignIn');
    });
  }

  it("isn't ended by a refused sign-in", async () => {
    await state.handleSessionFailure(Promise.resolve(failed({ kind: 'session-ended' })));
    expect(state.trouble.value).to.equal(null);
  });

  it('reports an error from the main process as a failure with a message', async () => {
    const result = await state.handleSessionFailure(Promise.reject(new Error('quoted')));
    expect(result).to.deep.include({ ok: false });
    expect(JSON.stringify(result)).not.to.include('quoted');
  });
});
