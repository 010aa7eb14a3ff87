/** Every part of a command that someone copies into a shell goes through this if it isn't written in our code. */
export function shellWord(word: string, isWindows = false): string {
  if (/^[\w./:-][\w./:~@-]*$/.test(word)) return word;
  // Windows file names can't contain a double quote, and it's the only quote that all Windows shells support.
  return isWindows ? `"${word}"` : quoted(word);
}

/** For POSIX shells and fish. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Turns `help call place` into `call place --help`, because commander's help command reads only one name. */
export function expandHelp(words: readonly string[]): readonly string[] {
  const [first, ...names] = words;
  return first === 'help' && names.length > 1 ? [...names, '--help'] : words;
}
