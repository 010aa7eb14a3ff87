import { ask } from '../../support/http.ts';
import { createKey, openDirect, signIn } from '../../support/tenants.ts';
import { callBody, openScene, type Scene, stopAndCompare } from '../environment.ts';
import type { Case } from '../run.ts';

/** A user with thousands of keys is deleted beside another one's key, and the core is killed on the way. */
export const deletion: Case = {
  name: 'deletion',
  title: 'a user with thousands of keys deleted, and a kill on the way',
  async attack(trial) {
    const scene = await openScene(trial);
    const cookie = await signIn(scene.core().url, scene.tenants.users.teammate.email);
    const { keyValue } = await createKey(scene.core().url, cookie);
    const keys = trial.isQuick ? 4_000 : 200_000;
    const direct = await openDirect(scene.database);
    trial.cleanup.defer(() => direct.close());
    const { database } = direct.storage;
    await addKeys(scene, keys, (rows) => database.write('api_keys').insert(rows));
    const left = async () => Number((await database.read('api_keys').count({ n: '*' }).first())?.['n']);

    await deleteTeammate(scene);
    scene.ledger.revoke(keyValue);
    // A start goes on with it at once.
    for (const goal of [keys - 1_500, 1]) {
      await place(scene, keyValue);
      await scene.stop('SIGKILL');
      await scene.start();
      await workOff(scene, goal, left);
    }
    await place(scene, keyValue);
    await stopAndCompare(scene);
  },
};

const place = ({ core, ledger, campaignId }: Scene, key: string) =>
  ledger.place(core().url, campaignId, key, callBody(`deletion-${performance.now()}`));

/** Until so few keys are left, the other key works all the while. */
async function workOff(scene: Scene, goal: number, left: () => Promise<number>): Promise<void> {
  const end = performance.now() + 60_000;
  while ((await left()) > goal) {
    const { status } = await place(scene, scene.key);
    if (status !== 202) scene.ledger.fail(`the key of another user was answered ${status}`);
    if (performance.now() > end) return scene.ledger.fail(`${await left()} keys are left`);
  }
}

async function addKeys({ tenants }: Scene, count: number, insert: (rows: object[]) => Promise<unknown>): Promise<void> {
  const { teammate } = tenants.users;
  const scope = {
    creator_id: teammate.id,
    creator_partner_id: tenants.partner.id,
    account_id: tenants.account.id,
    partner_id: tenants.partner.id,
  };
  const rowOf = (n: number) => ({ id: `many-${n}`, digest: `many-${n}`, name: 'One of many', created_at: n, ...scope });
  for (let start = 0; start < count; start += 400)
    await insert(Array.from({ length: Math.min(400, count - start) }, (_, n) => rowOf(start + n)));
}

async function deleteTeammate({ core, tenants, ledger }: Scene): Promise<void> {
  const { url } = core();
  const cookie = await signIn(url, tenants.users.partner.email);
  const { status } = await ask('DELETE', `${url}/console/users/${tenants.users.teammate.id}`, { cookie });
  if (status !== 204) ledger.fail(`the deletion was answered ${status}`);
}
