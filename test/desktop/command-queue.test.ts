import { expect } from 'chai';
import { type Command, CommandQueue } from '../../desktop/ipc.ts';

describe('the menu command queue', () => {
  const heard: string[] = [];
  const listener = (name: string) => (command: Command) => void heard.push(`${name} ${command}`);
  beforeEach(() => heard.splice(0));

  it('keeps commands until a listener is added, and then delivers each once, in order', () => {
    const queue = new CommandQueue<Command>();
    queue.push('show-calls');
    queue.push('find');
    queue.listen(listener('first'));
    queue.listen(listener('second'));
    expect(heard).to.deep.equal(['first show-calls', 'first find']);
  });

  it('keeps commands again after the listener is removed', () => {
    const queue = new CommandQueue<Command>();
    queue.listen(listener('first'))();
    queue.push('refresh');
    queue.listen(listener('second'));
    expect(heard).to.deep.equal(['second refresh']);
  });

  it('delivers only to the newest listener, even after the one it replaced is removed', () => {
    const queue = new CommandQueue<Command>();
    const stop = queue.listen(listener('first'));
    queue.listen(listener('second'));
    stop();
    queue.push('refresh');
    expect(heard).to.deep.equal(['second refresh']);
  });
});
