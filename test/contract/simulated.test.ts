import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { isPhoneNumber } from '#contract/calls/phone.ts';
import { simulatedOutcome } from '#contract/calls/simulated.ts';

const page = readFileSync(new URL('../../core/docs/rehearsing.md', import.meta.url), 'utf8');
/** Rows such as `| 62 to 83 | no_answer | 25 s | 1 s |`. */
const rows = [...page.matchAll(/^\| (\d\d) to (\d\d) \| `(\w+)` \| (\d+) s \| (\d+) s \|$/gm)];

describe('the simulated outcomes', () => {
  it('match the table in core/docs/rehearsing.md, for every number reserved for rehearsals', () => {
    const documented = rows.flatMap(([, from, to, state, shortest, step]) =>
      Array.from({ length: Number(to) - Number(from) + 1 }, (_, n) => ({ lastTwo: Number(from) + n, state, shortest, step })),
    );
    expect(documented.map(({ lastTwo }) => lastTwo)).to.deep.equal(Array.from({ length: 100 }, (_, n) => n));
    for (const { lastTwo, state, shortest, step } of documented) {
      for (let third = 0; third <= 9; third++) {
        const phone = `+493023125${third}${String(lastTwo).padStart(2, '0')}`;
        expect(isPhoneNumber(phone), phone).to.equal(true);
        const { state: simulated, seconds } = simulatedOutcome(phone);
        expect([simulated, seconds], phone).to.deep.equal([state, Number(shortest) + third * Number(step)]);
      }
    }
  });
});
