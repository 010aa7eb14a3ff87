import type { Actor, RetentionDays } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import type { DatabaseLocation } from '../../storage/engine/database.ts';
import type { Storage } from '../../storage/index.ts';
import type { Output } from './output.ts';

/** What a command works with while no database is open. */
export type Settings = {
  location: DatabaseLocation;
  /** Whether DATABASE_URL is set: a forgotten one must not create a second database, which the core does not know. */
  isDatabaseNamed: boolean;
  output: Output;
  /** Makes the path of a file absolute, as seen from the caller's folder. */
  fileOf(path: string): string;
  /** Opens the database, whose schema has to be complete, and closes it again. */
  useDatabase<Result>(use: (context: AdminContext) => Promise<Result>): Promise<Result>;
};

/** What a command works with. */
export type AdminContext = Settings & {
  ports: Ports;
  storage: Storage;
  /** Who runs the command, for the audit events. */
  actor: Actor;
  /** As RETENTION_DAYS and AUDIT_RETENTION_DAYS say, where they are set. */
  givenDays: Partial<RetentionDays>;
  readInput(): Promise<string>;
};

/**
 * What a command needs: `use` a complete schema; `fill` the same, and an empty or missing database is set up first; `migrate` any schema,
 * and a missing database is created; `inspect` any schema.
 */
export type Access = 'use' | 'fill' | 'migrate' | 'inspect';

type Run<Context, Input extends unknown[]> = (context: Context, ...input: Input) => Promise<unknown>;

/** Makes a commander action of a function that takes the command's arguments, then its options. */
export type Runner = {
  /** Opens the database for a command and closes it again. A command that has found a problem answers false. */
  withDatabase<Input extends unknown[]>(run: Run<AdminContext, Input>, access?: Access): (...input: Input) => Promise<void>;
  withoutDatabase<Input extends unknown[]>(run: Run<Settings, Input>): (...input: Input) => Promise<void>;
};
