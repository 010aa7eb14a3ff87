import { expect } from 'chai';
import { copyExport } from '../../desktop/csv-export.ts';

describe('an export', () => {
  const head = '"Contact","Phone"\r\n';
  const lost = '# INCOMPLETE, 1 rows: The connection to the server was lost. Export again.\r\n';

  /** Copies a file that arrives in these parts. */
  async function copy(parts: readonly (string | Uint8Array | Error)[], signal = new AbortController().signal) {
    let file = '';
    async function* body() {
      for (const part of parts) {
        if (part instanceof Error) throw part;
        yield typeof part === 'string' ? new TextEncoder().encode(part) : part;
      }
    }
    const write = async (text: string) => {
      file += text;
    };
    const exported = await copyExport({ body: body(), write, onRows: () => undefined, signal });
    return { file, exported };
  }

  it('is complete if its last line says so, however it was divided into parts', async () => {
    const whole = `\uFEFF${head}"Zoë","1"\r\n"two\nlines","2"\r\n# complete, 2 rows\r\n`;
    const bytes = new TextEncoder().encode(whole);
    for (const size of [1, 3, bytes.length]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.slice(index * size, (index + 1) * size));
      expect(await copy(parts)).to.deep.equal({ file: whole, exported: { rows: 2, problem: null } });
    }
  });

  it("reports the reason if the core couldn't finish it", async () => {
    const whole = `${head}"Ada","1"\r\n# INCOMPLETE, 1 rows: The server is stopping. Export again.\r\n`;
    expect((await copy([whole])).exported).to.deep.equal({ rows: 1, problem: 'The server is stopping. Export again.' });
  });

  for (const [place, cutOff, end] of [
    ['after a row', '', ''],
    ['within a row', '"Bob"', '\r\n'],
    ['within a cell', '"Bo', '"\r\n'],
    ['within a cell that imitates the last line', '"\n# complete, 1 rows\r\n', '"\r\n'],
  ] as const) {
    it(`ends with a line that says so if it was cut off ${place}`, async () => {
      for (const cause of [[], [new Error('ECONNRESET')]]) {
        const { file, exported } = await copy([`${head}"Ada","1"\r\n${cutOff}`, ...cause]);
        expect(file).to.equal(`${head}"Ada","1"\r\n${cutOff}${end}${lost}`);
        expect(exported?.problem).to.match(/connection .* lost/);
      }
    });
  }

  it('saves nothing if it was cancelled', async () => {
    expect((await copy([head], AbortSignal.abort())).exported).to.equal(null);
  });
});
