import { expect } from 'chai';
import type { Failure, Result } from '../../../desktop/ipc.ts';
import { List } from '../../../desktop/renderer/state/list.ts';

const unreachable: Failure = { kind: 'unreachable', detail: 'Nothing listens.' };
const loaded = (view: string): Result<string> => ({ ok: true, value: view });

/** Creates a list whose responses the test provides in any order. */
function controlled() {
  const answers: PromiseWithResolvers<Result<string>>[] = [];
  const list = new List<string>();
  list.follow({
    filter: '',
    load: () => {
      const answer = Promise.withResolvers<Result<string>>();
      answers.push(answer);
      return answer.promise;
    },
  });
  return { list, answer: (index: number, result: Result<string>) => answers[index]?.resolve(result) };
}

type Numbers = { numbers: number[]; nextCursor: string | null };

/** Creates a list of the numbers from one up, three in a page. `count` is how many there are now. */
function counting(filter = '') {
  const asked: (string | null)[] = [];
  const list = new List<Numbers>();
  const source = {
    filter,
    count: 8,
    async load(cursor: string | null) {
      asked.push(cursor);
      const from = Number(cursor ?? 0);
      const numbers = [1, 2, 3].map((step) => from + step).filter((number) => number <= source.count);
      return { ok: true, value: { numbers, nextCursor: from + 3 < source.count ? String(from + 3) : null } } as const;
    },
  };
  list.follow(source);
  return { list, source, asked, shown: () => list.state.value.view?.numbers };
}

describe('a list', () => {
  it('keeps its view if reloading it fails, and clears the failure after loading successfully', async () => {
    const { list, answer } = controlled();
    const load = async (index: number, result: Result<string>) => {
      const loading = list.refresh();
      answer(index, result);
      await loading;
      return list.state.value;
    };
    await load(0, loaded('old'));
    expect(await load(1, { ok: false, failure: unreachable })).to.deep.include({ view: 'old', failure: unreachable, isLoading: false });
    expect(await load(2, loaded('new'))).to.deep.include({ view: 'new', failure: null, isLoading: false });
  });

  it('keeps its view if the next page fails to load', async () => {
    const { list, source, shown } = counting();
    await list.refresh();
    list.follow({ ...source, load: async () => ({ ok: false, failure: unreachable }) });
    expect(await list.more()).to.deep.equal(unreachable);
    expect(shown()).to.deep.equal([1, 2, 3]);
  });

  it('uses the response of its latest load, whatever order the responses arrive in', async () => {
    const { list, answer } = controlled();
    const loads = [list.refresh(), list.refresh()];
    answer(1, loaded('new'));
    await loads[1];
    answer(0, loaded('old'));
    await loads[0];
    expect(list.state.value).to.deep.include({ view: 'new', failure: null, isLoading: false });
  });

  it('keeps a local change, whatever an earlier load returns', async () => {
    const { list, answer } = controlled();
    const load = list.refresh();
    list.change('changed');
    answer(0, loaded('old'));
    await load;
    expect(list.state.value).to.deep.include({ view: 'changed', isLoading: false });
  });

  it("isn't reloaded while it's loading, after a failure, or before it's stale", async () => {
    const { list, answer } = controlled();
    const load = list.refresh();
    await list.refreshIfOlder(0);
    answer(0, loaded('first'));
    await load;
    await list.refreshIfOlder(60_000);
    expect(list.state.value.isLoading).to.equal(false);
    const age = () => {
      list.state.value = { ...list.state.value, loadedAt: 0 };
    };
    age();
    const again = list.refreshIfOlder(60_000);
    expect(list.state.value.isLoading).to.equal(true);
    // Only the second load is in progress.
    answer(1, { ok: false, failure: unreachable });
    await again;
    age();
    await list.refreshIfOlder(60_000);
    expect(list.state.value).to.deep.include({ view: 'first', failure: unreachable, isLoading: false });
  });

  it('rests for twenty times as long as its last load took', async () => {
    const { list, asked } = counting();
    await list.refresh();
    for (const [ageMs, loads] of [
      [190_000, 1],
      [200_000, 2],
    ] as const) {
      list.state.value = { ...list.state.value, tookMs: 10_000, loadedAt: Date.now() - ageMs };
      await list.refreshIfOlder(0);
      expect(asked).to.have.length(loads);
    }
  });

  it('adds pages, and reloads all of them', async () => {
    const { list, source, asked, shown } = counting();
    await list.refresh();
    await list.more();
    expect(shown()).to.deep.equal([1, 2, 3, 4, 5, 6]);
    source.count = 5;
    await list.refresh();
    expect(shown()).to.deep.equal([1, 2, 3, 4, 5]);
    expect(asked).to.deep.equal([null, '3', null, '3']);
  });

  it('reloads only the first page if it can merge that with the others', async () => {
    const { list, source, asked, shown } = counting();
    list.follow({
      ...source,
      merge: (newest, { numbers, nextCursor }) => ({ numbers: [...newest.numbers, ...numbers.slice(3)], nextCursor }),
    });
    await list.refresh();
    await list.more();
    await list.refresh();
    expect(shown()).to.deep.equal([1, 2, 3, 4, 5, 6]);
    expect(asked).to.deep.equal([null, '3', null]);
  });

  it('shows what was filtered before until the new filter has loaded, and then only its first page', async () => {
    const { list, source, shown } = counting();
    await list.refresh();
    await list.more();
    list.follow({ ...source, filter: 'another' });
    const load = list.refresh();
    expect(shown()).to.deep.equal([1, 2, 3, 4, 5, 6]);
    await load;
    expect(shown()).to.deep.equal([1, 2, 3]);
  });

  it("doesn't add the next page while it still shows what was filtered by something else", async () => {
    const { list, source, asked } = counting();
    await list.refresh();
    list.follow({ ...source, filter: 'another' });
    await list.more();
    expect(asked).to.deep.equal([null]);
  });

  it("doesn't show what was filtered by something else to a user who returns to it", async () => {
    const { list, shown } = counting('some');
    await list.refresh();
    list.startWith('some');
    expect(shown()).to.deep.equal([1, 2, 3]);
    list.startWith('another');
    expect(shown()).to.equal(undefined);
  });

  it('loads nothing if there is nothing to load', async () => {
    const list = new List('initial');
    await list.refresh();
    expect(list.state.value).to.deep.include({ view: 'initial', isLoading: false, loadedAt: 0 });
  });
});
