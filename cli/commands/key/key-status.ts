import { CallkeyError } from '../../client/errors.ts';
import { type Context, endWith, loadSettings } from '../../context.ts';
import { keySetCommand, readGivenKey, readStoredKey, refuseOtherServer } from '../../keys/key-store.ts';
import { serverText } from './key-set.ts';

/** Shows which key the next command would use, but never the key itself. */
export async function keyStatus(context: Context): Promise<void> {
  const settings = await loadSettings(context);
  const { profileName: profile, profile: stored, server } = settings;
  const environmentKey = await readGivenKey(context.environment);
  if (environmentKey) {
    answer(context, { profile, server, stored: 'environment' }, `${environmentKey.where}, which overrides any stored key`);
    return;
  }
  if (stored) {
    if (server !== null) refuseOtherServer(settings, stored);
    const { keyValue, where } = await readStoredKey(stored, profile, context.folders);
    if (keyValue !== undefined) {
      answer(context, { profile, server, stored: stored.key }, `in ${where}`);
      return;
    }
  }
  answer(context, { profile, server, stored: null }, `none; run ${keySetCommand(profile)} to store one`);
  endWith(
    context,
    new CallkeyError('notFound', `No key is stored for the profile ${profile}. Run ${keySetCommand(profile)} to store one.`),
  );
}

type Status = { profile: string; server: string | null; stored: string | null };

function answer({ output }: Context, status: Status, key: string): void {
  output.answer(status, `Profile: ${status.profile}\n${serverText(status.server)}\nKey: ${key}`);
}
