import { expect } from 'chai';
import { resealSecrets } from '../../../core/domain/sign-in/second-factor.ts';
import { createSecretBox } from '../../../core/server/sealed-secrets.ts';
import { testRandomness } from '../../support/clock.ts';
import { testSecret } from '../../support/commands.ts';
import { secondFactorSuite } from '../../support/session-suite.ts';

const otherSecret = 'another secret for tests of at least 32 characters';

describe('a second factor', () => {
  const at = secondFactorSuite();
  const { tables, startAnother, newUser, enterCode, inSession, halfOpen, signInWith } = at;

  describe('in the database', () => {
    it('can’t be read by someone who steals the database', async () => {
      const { id, app, recoveryCodes } = await newUser();
      const rows = JSON.stringify([
        await tables().read('second_factors').where({ user_id: id }),
        await tables().read('recovery_codes').where({ user_id: id }),
      ]);
      for (const secret of [app.secret, ...recoveryCodes, ...recoveryCodes.map((code) => code.replace('-', ''))])
        expect(rows).not.to.include(secret);
      expect(await tables().read('recovery_codes').where({ user_id: id })).to.have.length(10);
    });

    it("can't be decrypted with another session secret, or in another user's row", async () => {
      const [one, other] = [await newUser(), await newUser()];
      const thief = await startAnother({ SESSION_SECRETS: otherSecret });
      const refused = await enterCode(await halfOpen(one.email, { at: thief }), one.app.code(), { at: thief });
      expect([refused.status, refused.json['detail']]).to.deep.equal([
        503,
        "This server can't read your second factor. Ask an administrator to reset it, or the operator to check the log.",
      ]);
      expect(JSON.stringify(thief.log)).to.include('SESSION_SECRETS no longer contains');
      const factors = () => tables().write('second_factors');
      const planted = await factors().where({ user_id: other.id }).first('secret');
      await factors()
        .where({ user_id: one.id })
        .update({ secret: planted?.secret ?? '' });
      expect((await signInWith(one.email, other.app.code())).status).to.equal(503);
      await factors().whereIn('user_id', [one.id, other.id]).delete();
    });

    it('is re-encrypted with a new session secret, and then no longer needs the old one', async () => {
      const { email, app, recoveryCodes } = await newUser();
      const { ports } = at.direct;
      const resealed = await resealSecrets({ ...ports, secretBox: createSecretBox([otherSecret, testSecret], testRandomness) });
      expect(resealed.unreadable).to.equal(0);
      expect(resealed.resealed).to.be.greaterThan(0);
      const rotated = await startAnother({ SESSION_SECRETS: otherSecret });
      const enter = async (code: string) => (await enterCode(await halfOpen(email, { at: rotated }), code, { at: rotated })).status;
      expect({ byApp: await enter(app.code()), byRecovery: await enter(recoveryCodes[0] ?? '') }).to.deep.equal({
        byApp: 201,
        byRecovery: 201,
      });
      await resealSecrets({ ...ports, secretBox: createSecretBox([testSecret, otherSecret], testRandomness) });
    });
  });

  it('never appears in a log, a metric or the activity', async () => {
    const { app, recoveryCodes, email, cookie } = await newUser();
    const code = app.code();
    await signInWith(email, code);
    await signInWith(email, recoveryCodes[0] ?? '');
    await signInWith(email, code);
    await inSession('DELETE', '/console/second-factor', cookie, { code: recoveryCodes[1] });
    const metrics = await (await fetch(`${at.core.managementUrl}/metrics`)).text();
    const written = [JSON.stringify(at.core.log), metrics, JSON.stringify(await tables().read('audit_events'))].join('\n');
    for (const secret of [app.secret, `"${code}"`, ...recoveryCodes]) expect(written).not.to.include(secret);
    expect(metrics).to.match(/callkey_second_factor_codes_total\{result="accepted"\} [1-9]/);
    expect(metrics).to.match(/callkey_second_factor_codes_total\{result="refused"\} [1-9]/);
  });
});
