import { expect } from 'chai';
import { copyExport } from '../../desktop/csv-export.ts';

const lost = 'The connection to the server was lost. Export again.';

describe('an export', () => {
  const head = '"Contact","Phone"\r\n';

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
      expect(await copy(parts)).to.deep.equal({ file: whole, exported: { ok: true, value: 2 } });
    }
  });

  for (const [place, rest, problem] of [
    [
      "the core couldn't finish it",
      '# INCOMPLETE, 1 rows: The server is stopping. Export again.\r\n',
      'The server is stopping. Export again.',
    ],
    ['it was cut off after a row', '', lost],
    ['it was cut off within a row', '"Bob"', lost],
    ['it was cut off within a cell that imitates the last line', '"\n# complete, 1 rows\r\n', lost],
  ] as const) {
    it(`fails if ${place}`, async () => {
      for (const cause of [[], [new Error('ECONNRESET')]]) {
        const { exported } = await copy([`${head}"Ada","1"\r\n${rest}`, ...cause]);
        expect(exported).to.have.nested.property('failure.detail', problem);
      }
    });
  }

  it('saves nothing if it was cancelled', async () => {
    expect((await copy([head], AbortSignal.abort())).exported).to.deep.equal({ ok: true, value: null });
  });
});
