/**
 * Quotes a word of a command that someone copies into a shell, unless it contains only characters that every shell leaves as they are. Every
 * part of such a command that isn't written in our code goes through this.
 *
 * @param isWindows whether the command is for a shell on Windows
 */
export function shellWord(word: string, isWindows = false): string {
  if (/^[\w./:-][\w./:~@-]*$/.test(word)) return word;
  // Windows file names can't contain a double quote, and it's the only quote that all Windows shells support.
  return isWindows ? `"${word}"` : quoted(word);
}

/** Quotes a text for POSIX shells and fish. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
