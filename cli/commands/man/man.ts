import type { Command } from 'commander';
import type { Context } from '../../context.ts';
import { manPage } from './man-page.ts';

/** Prints the manual page, which is generated from the commands so that it always matches them. */
export async function man({ output, version }: Context, program: Command): Promise<void> {
  const page = manPage(program, version);
  output.answer({ page }, page);
}
