import { expect } from 'chai';
import { importFileSchema } from '../../core/domain/directory/import.ts';
import { accounts, ada, campaigns, partners, stan, tia } from '../support/ports.ts';

describe('an import file', () => {
  const isFile = (file: object) => importFileSchema.safeParse(file).success;

  it('may omit any list', () => {
    expect(importFileSchema.parse({})).to.deep.equal({ partners: [], accounts: [], campaigns: [], users: [] });
  });

  for (const [kind, thing] of [
    ['partners', partners[0]],
    ['accounts', accounts[0]],
    ['campaigns', campaigns[0]],
    ['users', ada],
    ['users', tia],
    ['users', stan],
    ['users', { ...stan, disabled: true }],
  ] as const) {
    const { userType, disabled } = { userType: '', disabled: false, ...thing };
    it(`accepts only the known fields of ${disabled ? 'disabled ' : ''}${kind}${userType && ` of the type ${userType}`}`, () => {
      expect(importFileSchema.parse({ [kind]: [thing] })[kind]).to.deep.equal([thing]);
      expect(isFile({ [kind]: [{ ...thing, id: 'x' }] })).to.equal(false);
      for (const field of Object.keys({ ...thing })) {
        const isOptional = kind === 'users' && ['partner', 'account', 'disabled'].includes(field);
        expect(isFile({ [kind]: [{ ...thing, [field]: undefined }] }), `without ${field}`).to.equal(isOptional);
        expect(isFile({ [kind]: [{ ...thing, [field]: '' }] }), `with an empty ${field}`).to.equal(false);
      }
    });
  }

  it("can't contain lists other than partners, accounts, campaigns and users", () => {
    expect(isFile({ keys: [] })).to.equal(false);
  });

  for (const [field, most] of [
    ['externalId', 128],
    ['name', 200],
  ] as const) {
    it(`allows at most ${most} characters in ${field}`, () => {
      const named = (length: number) => isFile({ partners: [{ ...partners[0], [field]: 'x'.repeat(length) }] });
      expect(named(most)).to.equal(true);
      expect(named(most + 1)).to.equal(false);
    });
  }
});
