import { expect } from 'chai';
import { requireGoodPassword } from '../../core/domain/sign-in/new-password.ts';
import { fakePorts, readProblem } from '../support/ports.ts';

const ada = { email: 'ada.lovelace@example.org' };
const check = (password: string, user = ada) => readProblem(requireGoodPassword(fakePorts(), user, password, 'newPassword'));

describe('a new password', () => {
  for (const [what, passwords, refusal] of [
    ['common', ['password', 'Password123!', '12345678', 'qwertyuiop', 'P@ssw0rd', 'letmein1', '2026Welcome!'], 'a common one'],
    ['a pattern', ['aaaaaaaa', '87654321', 'abcd1234', 'abcdefghijkl', 'xyz!xyz!xyz!', '0000000000000000'], 'a simple pattern'],
    ['a date', ['19841212', '12121984', '12311984', '1984-12-12', '12.12.1984', '1.12.1984', '12 / 12 / 84'], 'a simple pattern'],
    [
      "the user's address",
      ['ada.lovelace@example.org and more of it', 'AdaLovelace-2026', 'xx-ada_lovelace', 'I am Ada Lovelace'],
      'the email address',
    ],
    ["the server's name", ['callkey-staff-9', 'calls.example.com/42', 'For EXAMPLE, this one'], "the server's name"],
  ] as const) {
    it(`can't be or contain ${what}`, async () => {
      for (const password of passwords)
        expect(await check(password), password)
          .to.match(/^invalid at newPassword: /)
          .and.contain(refusal);
    });
  }

  it("can't be little more than the domain of the user's address", async () => {
    const user = { email: 'ada@harbour-dental.test' };
    for (const password of ['harbour-dental.test', 'HarbourDental1'])
      expect(await check(password, user), password).to.contain('the email address');
    expect(await check('harbour dental opens at nine', user)).to.contain('no problem');
  });

  it('can be anything else, of any characters', async () => {
    for (const password of [
      'correct horse battery staple',
      'sieben rote Äpfel',
      'kq7v-zm2x',
      '19841350',
      '84721955',
      'Ada Lovelace wrote four quiet words',
      '東京の夜は静かです',
      `${'long and quiet '.repeat(8)}.`,
    ])
      expect(await check(password), password).to.contain('no problem');
  });
});
