import { expect } from 'chai';
import { ask, readCookies } from '../../support/http.ts';
import { secondFactorSuite, tryRoutes } from '../../support/session-suite.ts';

describe('a second factor', () => {
  const at = secondFactorSuite();
  const { tables, startAnother, closeOthers, newUser, listActions, tryPassword, enterCode, inSession, readStatus, halfOpen, signInWith } =
    at;

  describe('at sign-in', () => {
    it('is required after the password, and starts a session with a new ID', async () => {
      const { email, app } = await newUser();
      const answer = await tryPassword(email);
      expect([answer.status, answer.json]).to.deep.equal([202, { secondFactor: true }]);
      const waiting = readCookies(answer);
      const entered = await enterCode(waiting, app.code());
      expect(entered.status).to.equal(201);
      expect(entered.json).to.deep.include({ secondFactor: true });
      const opened = readCookies(entered);
      expect([readCookies(answer), opened].map((cookies) => cookies.includes('callkey_device_'))).to.deep.equal([false, true]);
      expect((await inSession('GET', '/console/session', opened)).text).to.equal(entered.text);
      expect(opened.split(';')[0]).not.to.equal(waiting.split(';')[0]);
      expect(await readStatus(waiting), 'the half-open session').to.equal(401);
    });

    it('must be entered before anything else: until then, every route returns the common 401', async () => {
      const { email, app } = await newUser();
      const cookie = await halfOpen(email);
      const common = (await ask('GET', `${at.core.url}/console/session`)).text;
      const answers = await tryRoutes(at.core.url, cookie, null);
      expect(answers.filter(({ status, text }) => status !== 401 || text !== common)).to.deep.equal([]);
      expect((await enterCode(cookie, app.code())).status).to.equal(201);
    });

    it('must be entered within ten minutes', async () => {
      const { email, app } = await newUser();
      const [inTime, late] = [await halfOpen(email), await halfOpen(email)];
      at.clock.advance({ minutes: 10 });
      expect((await enterCode(inTime, app.code())).status).to.equal(201);
      at.clock.advance({ milliseconds: 1 });
      expect((await enterCode(late, app.code(1))).status).to.equal(401);
    });

    it('is recorded in the activity, whether or not the code was valid', async () => {
      const { email, app, id } = await newUser();
      const { read } = tables();
      await halfOpen(email);
      const before = await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id');
      const other = await startAnother();
      expect((await enterCode(await halfOpen(email, { at: other }), '000000', { at: other })).status).to.equal(401);
      await signInWith(email, app.code());
      // A core records refused codes in batches, and the rest when it closes.
      await closeOthers();
      expect(await listActions(id)).to.include('second-factor.refused');
      expect(await read('audit_events').where({ subject_id: id, action: 'session.started' }).pluck('id')).to.have.length(before.length + 1);
    });
  });
});
