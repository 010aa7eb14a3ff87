import type { Command } from 'commander';

/** Adds examples to a command's help. Each example is given without the program's name. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  return command.addHelpText('after', () => {
    const { name } = findProgram(command);
    return `\nExamples:\n${examples.map((example) => `  ${name} ${example}`).join('\n')}`;
  });
}

function findProgram(command: Command): { name: string } {
  return command.parent ? findProgram(command.parent) : { name: command.name() };
}
