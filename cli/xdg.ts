import { isAbsolute, join } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where things are kept (XDG Base Directory Specification 0.8, on every system). */
export type Folders = {
  /** Which profiles there are. Never a key: people put this folder under version control. */
  config: string;
  /** Keys, where they may be in files at all. */
  data: string;
  /** The journal. */
  state: string;
};

export function xdgFolders(environment: Environment, home: string): Folders {
  // The specification has relative paths ignored.
  const folder = (variable: string, ...ifUnset: string[]) => {
    const given = environment[variable];
    return join(given !== undefined && isAbsolute(given) ? given : join(home, ...ifUnset), 'callkey');
  };
  return {
    config: folder('XDG_CONFIG_HOME', '.config'),
    data: folder('XDG_DATA_HOME', '.local', 'share'),
    state: folder('XDG_STATE_HOME', '.local', 'state'),
  };
}
