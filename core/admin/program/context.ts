import type { Actor, RetentionDays } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import type { DatabaseLocation } from '../../storage/engine/database.ts';
import type { Storage } from '../../storage/index.ts';
import type { Output } from './output.ts';

/** A command's context without an open database. */
export type Settings = {
  location: DatabaseLocation;
  /** Whether DATABASE_URL is set. If it isn't, a command must not create a database, because the core may use a different one. */
  isDatabaseNamed: boolean;
  output: Output;
  /** Makes a path absolute, relative to the caller's folder. */
  resolveFile(path: string): string;
  /** Opens the database, which must have a complete schema, and closes it again. */
  useDatabase<Result>(use: (context: AdminContext) => Promise<Result>): Promise<Result>;
};

/** A command's context while the database is open. */
export type AdminContext = Settings & {
  ports: Ports;
  storage: Storage;
  /** The user who runs the command, for audit events. */
  actor: Actor;
  /** The values of RETENTION_DAYS and AUDIT_RETENTION_DAYS, if they're set. */
  configuredDays: Partial<RetentionDays>;
  readInput(): Promise<string>;
};

/**
 * What a command requires of the database. `use`: a complete schema. `fill`: the same, but an empty or missing database is set up first.
 * `migrate`: any schema, and a missing database is created. `inspect`: any schema.
 */
export type Access = 'use' | 'fill' | 'migrate' | 'inspect';

type Run<Context, Input extends unknown[]> = (context: Context, ...input: Input) => Promise<unknown>;

/** Turns a function that takes the command's arguments and then its options into a commander action. */
export type Runner = {
  /** Opens the database for a command, and closes it again. A command returns false if it found a problem. */
  withDatabase<Input extends unknown[]>(run: Run<AdminContext, Input>, access?: Access): (...input: Input) => Promise<void>;
  withoutDatabase<Input extends unknown[]>(run: Run<Settings, Input>): (...input: Input) => Promise<void>;
};
