import { CallkeyError } from '../../client/errors.ts';
import { type Context, endWith, loadSettings } from '../../context.ts';
import { keySetCommand, readEnvironmentKey, readStoredKey, refuseOtherServer } from '../../keys/read-key.ts';
import { formatServer } from './key-set.ts';

/** Shows which key the next command would use, but never the key itself. */
export async function keyStatus(context: Context): Promise<void> {
  const settings = await loadSettings(context);
  const { profileName: profile, profile: stored, server } = settings;
  const environmentKey = await readEnvironmentKey(context.environment);
  if (environmentKey) {
    printStatus(context, { profile, server, stored: 'environment' }, `${environmentKey.where}, which overrides any stored key`);
    return;
  }
  if (stored) {
    if (server !== null) refuseOtherServer(settings, stored);
    const { keyValue, where } = await readStoredKey(stored, profile, context.folders);
    if (keyValue !== undefined) {
      printStatus(context, { profile, server, stored: stored.key }, `in ${where}`);
      return;
    }
  }
  printStatus(context, { profile, server, stored: null }, `none; run ${keySetCommand(profile)} to store one`);
  endWith(
    context,
    new CallkeyError('notFound', `No key is stored for the profile ${profile}. Run ${keySetCommand(profile)} to store one.`),
  );
}

type Status = { profile: string; server: string | null; stored: string | null };

function printStatus({ output }: Context, status: Status, key: string): void {
  output.answer(status, `Profile: ${status.profile}\n${formatServer(status.server)}\nKey: ${key}`);
}
