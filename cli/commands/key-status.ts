import { type Context, settingsOf } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { checkedKey, openKeyStore } from '../keys/key-store.ts';
import { serverText } from './key-set.ts';

/** Shows which key the next command would use, and never the key itself. */
export async function keyStatus(context: Context): Promise<void> {
  const { profileName: profile, profile: stored, server } = await settingsOf(context);
  const given = context.environment['CALLKEY_API_KEY'];
  if (given) {
    checkedKey(given.trim(), 'CALLKEY_API_KEY');
    answer(context, { profile, server, stored: 'environment' }, 'in CALLKEY_API_KEY, which goes before any that is stored');
    return;
  }
  const store = stored && (await openKeyStore(stored.key, profile, context.folders));
  if (stored && store && (await store.read()) !== undefined) {
    answer(context, { profile, server, stored: stored.key }, `in ${store.where}`);
    return;
  }
  answer(context, { profile, server, stored: null }, 'none; run callkey key set to store one');
  process.exitCode = exitCodes.notFound;
}

type Status = { profile: string; server: string | null; stored: string | null };

function answer({ output }: Context, status: Status, key: string): void {
  output.answer(status, `Profile: ${status.profile}\n${serverText(status.server)}\nKey: ${key}`);
}
