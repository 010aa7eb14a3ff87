import { operator } from '../../core/domain/audit/audit.ts';
import { type ImportFile, importAll, importFileSchema } from '../../core/domain/directory/import.ts';
import type { ImportedEntity, ImportKind } from '../../core/domain/model.ts';
import type { ImportStore } from '../../core/domain/ports.ts';
import { fakePorts } from './ports.ts';

type Step = { kind: ImportKind } & Parameters<ImportStore['write']>[1];

/** Creates a fake store in memory for what an import reads and writes. The write with this number, counted from one, fails. */
export function createImports(failingStep = 0, failure = new Error('The disk is full.')) {
  const entities: Record<ImportKind, Map<string, ImportedEntity>> = {
    partners: new Map(),
    accounts: new Map(),
    campaigns: new Map(),
    users: new Map(),
  };
  const steps: Step[] = [];
  const strangers = new Map<string, string | null>();
  const asked: string[][] = [];
  const imports: ImportStore = {
    find: async (kind, externalIds) => {
      asked.push([...externalIds]);
      return new Map([...entities[kind]].filter(([externalId]) => externalIds.includes(externalId)));
    },
    findEmails: async (emails) => {
      const owners = [...entities.users.values()].map(({ email, externalId }): [string, string | null] => [email ?? '', externalId]);
      return new Map([...owners, ...strangers].filter(([email]) => emails.includes(email)));
    },
    write: async (kind, step) => {
      if (steps.length + 1 === failingStep) throw failure;
      steps.push({ kind, ...step });
      for (const { entity } of [...step.added, ...step.changed]) entities[kind].set(entity.externalId, entity);
      return new Map();
    },
  };
  let pauses = 0;
  const run = (file: Partial<ImportFile>, pause: () => Promise<void> = async () => undefined) =>
    importAll(
      fakePorts(),
      imports,
      () => {
        pauses++;
        return pause();
      },
      operator.actor,
      importFileSchema.parse(file),
    );
  return { run, steps, strangers, asked, entities, pauses: () => pauses };
}

export const partners = [
  { externalId: 'p1', name: 'One' },
  { externalId: 'p2', name: 'Two' },
];
export const accounts = [{ externalId: 'a1', name: 'A', partner: 'p1' }];
export const campaigns = [{ externalId: 'c1', name: 'C', account: 'a1' }];
export const ada = { externalId: 'u1', email: 'ada@example.com', name: 'Ada', userType: 'account' as const, account: 'a1' };
export const pat = { externalId: 'u2', email: 'pat@example.com', name: 'Pat', userType: 'partner' as const, partner: 'p1' };
export const tia = { externalId: 'u3', email: 'tia@example.com', name: 'Tia', userType: 'partner' as const, partner: 'p1', account: 'a1' };
export const stan = { externalId: 'u4', email: 'stan@example.com', name: 'Stan', userType: 'staff' as const };
export const all = { partners, accounts, campaigns, users: [ada, pat, tia, stan] };
export const counts = (added: number, changed: number, unchanged: number) => ({ added, changed, unchanged });

/** Returns the error message of an import, starting with the problem code. */
export const readRefusal = (importing: Promise<unknown>) =>
  importing.then(
    () => 'nothing',
    (error) => `${error.code}: ${error.message}`,
  );
