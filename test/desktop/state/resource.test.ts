import { expect } from 'chai';
import type { Failure, Result } from '../../../desktop/ipc.ts';
import { loadNext, Resource } from '../../../desktop/renderer/state/list.ts';

const unreachable: Failure = { kind: 'unreachable', detail: 'Nothing listens.' };
const loaded = (value: string): Result<string> => ({ ok: true, value });

/** Creates a resource whose responses the test provides in any order. */
function controlled() {
  const answers: PromiseWithResolvers<Result<string>>[] = [];
  const resource = new Resource<string>(() => {
    const answer = Promise.withResolvers<Result<string>>();
    answers.push(answer);
    return answer.promise;
  });
  return { resource, answer: (index: number, result: Result<string>) => answers[index]?.resolve(result) };
}

describe('a resource', () => {
  it('keeps its value if reloading it fails', async () => {
    const { resource, answer } = controlled();
    const first = resource.refresh();
    answer(0, loaded('old'));
    await first;
    const second = resource.refresh();
    answer(1, { ok: false, failure: unreachable });
    await second;
    expect(resource.state.value).to.deep.include({ value: 'old', failure: unreachable, isLoading: false });
  });

  it('uses the response of its latest load, whatever order the responses arrive in', async () => {
    const { resource, answer } = controlled();
    const loads = [resource.refresh(), resource.refresh()];
    answer(1, loaded('new'));
    await loads[1];
    answer(0, loaded('old'));
    await loads[0];
    expect(resource.state.value).to.deep.include({ value: 'new', failure: null, isLoading: false });
  });

  it('keeps a local change, whatever an earlier load returns', async () => {
    const { resource, answer } = controlled();
    const load = resource.refresh();
    resource.change('changed');
    answer(0, loaded('old'));
    await load;
    expect(resource.state.value).to.deep.include({ value: 'changed', isLoading: false });
  });

  it('clears a failure after loading successfully', async () => {
    const { resource, answer } = controlled();
    const first = resource.refresh();
    answer(0, { ok: false, failure: unreachable });
    await first;
    const second = resource.refresh();
    answer(1, loaded('new'));
    await second;
    expect(resource.state.value).to.deep.include({ value: 'new', failure: null, isLoading: false });
  });

  it("isn't reloaded while it's loading, after a failure, or before it's stale", async () => {
    const { resource, answer } = controlled();
    const load = resource.refresh();
    await resource.refreshIfOlder(0);
    answer(0, loaded('first'));
    await load;
    await resource.refreshIfOlder(60_000);
    expect(resource.state.value.isLoading).to.equal(false);
    const age = () => {
      resource.state.value = { ...resource.state.value, loadedAt: 0 };
    };
    age();
    const again = resource.refreshIfOlder(60_000);
    expect(resource.state.value.isLoading).to.equal(true);
    // Only the second load is in progress.
    answer(1, { ok: false, failure: unreachable });
    await again;
    age();
    await resource.refreshIfOlder(60_000);
    expect(resource.state.value).to.deep.include({ value: 'first', failure: unreachable, isLoading: false });
  });

  it("doesn't load the next page while it still shows the items of another search", async () => {
    const shown = { items: ['old'], nextCursor: 'after old' };
    const asked: (string | null)[] = [];
    const pages = {
      load: async (cursor: string | null) => {
        asked.push(cursor);
        return { ok: true, value: shown } as const;
      },
      join: (view: typeof shown) => view,
      count: () => 1,
      empty: shown,
    };
    expect(await loadNext(pages, new Resource(() => pages.load(null), shown))).to.equal(null);
    expect(asked).to.deep.equal([]);
  });
});
