import { isAbsolute, join } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The folders where the command stores its files (XDG Base Directory Specification 0.8, on every system). */
export type Folders = {
  /** For profiles, but never keys: many users put this folder under version control. */
  config: string;
  /** For keys, if the user chose to store them in files. */
  data: string;
  /** For journals, calls without a response, and the last call of each campaign. */
  state: string;
};

export function xdgFolders(environment: Environment, home: string): Folders {
  const folder = (variable: string, ...fallback: string[]) => {
    const configured = environment[variable];
    // The specification requires relative paths to be ignored.
    return join(configured !== undefined && isAbsolute(configured) ? configured : join(home, ...fallback), 'callkey');
  };
  return {
    config: folder('XDG_CONFIG_HOME', '.config'),
    data: folder('XDG_DATA_HOME', '.local', 'share'),
    state: folder('XDG_STATE_HOME', '.local', 'state'),
  };
}
