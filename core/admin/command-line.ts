import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { eastAsianWidth } from 'get-east-asian-width';
import type { z } from 'zod';
import { limits } from '#contract/limits.ts';
import { safeJson, stripControls } from '#contract/text/terminal-text.ts';
import { lineSchema } from '#contract/text/text.ts';
import { validate } from '#contract/validate.ts';
import { operator } from '../domain/audit/audit.ts';
import type { Caller } from '../domain/model.ts';
import type { Ports, RetentionDays } from '../domain/ports.ts';
import { errorCode, Problem } from '../domain/problem.ts';
import { adminName } from '../program.ts';
import type { DatabaseLocation } from '../storage/engine/database.ts';
import { explainDatabaseError } from '../storage/engine/errors.ts';
import type { Storage } from '../storage/storage.ts';

/** A command's context without an open database. */
export type Settings = {
  location: DatabaseLocation;
  /** Whether DATABASE_URL is set. If it isn't, a command must not create a database, because the core may use a different one. */
  isDatabaseNamed: boolean;
  output: Output;
  /** Makes a path absolute. Paths are relative to the caller's folder, which isn't always the process's. */
  resolveFile(path: string): string;
  /** Opens the database, which must have a complete schema, and closes it again. */
  useDatabase<Result>(use: (context: AdminContext) => Promise<Result>): Promise<Result>;
};

export type AdminContext = Settings & {
  ports: Ports;
  storage: Storage;
  /** The operator, with the name of the system user who runs the command. */
  caller: Caller;
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

/** The ID in all examples. */
export const exampleId = '01a20138-3d19-7da7-9907-3a9fb48fa32a';
export const exampleAccount = `--account ${exampleId}`;
export const examplePartner = `--partner ${exampleId}`;

/** Adds examples to a command's help. Each example is given without the program's name. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((example) => `  ${adminName} ${example}`).join('\n')}`);
}

export const nameSchema = lineSchema(limits.name);

/** A file can have thousands of errors, so a terminal shows only the first ones. */
const maxShownErrors = 20;

/** Validates an input file. @throws Problem `invalid` that says what's wrong, and where */
export function parseInput<Schema extends z.ZodType>(schema: Schema, input: unknown, inputName: string): z.output<Schema> {
  const validated = validate(schema, input);
  if (validated.ok) return validated.data;
  const errors = validated.errors
    .slice(0, maxShownErrors)
    .map(({ path, message }) => oneLine(path === '' ? message : `${path}: ${message}`));
  throw new Problem('invalid', `${oneLine(inputName)}: ${errors.join('\n')}`);
}

/** Returns NaN for anything but decimal digits, because Number() also reads an empty text, spaces and hexadecimal digits. */
export function toNumber(text: string): number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
}

export type Output = {
  /** Writes the result. If that fails, the command fails, and the result goes to standard error. */
  answer(json: object, text: string): void;
  /** Writes to standard error, so that standard output has only the result. Writes JSON if results are JSON. */
  error(code: string, text: string): void;
};

export function outputTo(streams: { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream }, asJson: boolean): Output {
  const error: Output['error'] = (code, text) =>
    streams.stderr.write(asJson ? `${safeJson({ error: { code, message: text } })}\n` : `error: ${stripControls(text)}\n`);
  return {
    answer(json, text) {
      const result = asJson ? safeJson(json) : stripControls(text);
      streams.stdout.write(`${result}\n`, (lost) => {
        // EPIPE isn't a failure, because a reader such as `head -1` may stop before the end of the output.
        if (!lost || errorCode(lost) === 'EPIPE') return;
        process.exitCode ||= 1;
        // Write the result here instead, because it may contain a one-time password, or a list that no other command shows.
        error(
          'failed',
          `Couldn't write to standard output: ${explainDatabaseError(lost)?.cause ?? lost.message}. The result is:\n${result}`,
        );
      });
    },
    error,
  };
}

/** Puts text from outside on one line, because after a line break, it could imitate a line of our own output. */
export function oneLine(text: string): string {
  return stripControls(text.replace(/\s+/g, ' ')).trim();
}

/** The maximum width of a name, in terminal columns. */
const nameWidth = 40;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows.map((row) => row.map(oneLine))];
  const widths = head.map((_, column) => all.reduce((widest, row) => Math.max(widest, displayWidth(row[column] ?? '')), 0));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Shortens a name for a table cell. Identifiers and addresses aren't shortened, because people copy them. */
export function shortName(name: string): string {
  const line = oneLine(name);
  if (displayWidth(line) <= nameWidth) return line;
  let kept = '';
  let width = 0;
  for (const { segment } of graphemes.segment(line)) {
    width += graphemeWidth(segment);
    if (width >= nameWidth) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/** Returns a width in terminal columns: two for Chinese, Japanese and Korean characters and emoji, and none for combining marks. */
function displayWidth(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (/^[\p{M}\p{Cf}]+$/u.test(grapheme)) return 0;
  if (/\p{Emoji_Presentation}|\uFE0F/u.test(grapheme)) return 2;
  return eastAsianWidth(grapheme.codePointAt(0) ?? 0);
}

/** Identifies the operator by the system user: `local:callkey`, or `local:ada (as callkey)` with sudo. */
export function toOperator(environment: Readonly<Record<string, string | undefined>>): Caller {
  const name = systemUser();
  const sudoer = environment['SUDO_USER'];
  const who = sudoer === undefined || sudoer === '' || sudoer === name ? name : `${sudoer} (as ${name})`;
  return { ...operator, actor: { who: null, address: `local:${who}` } };
}

/** Returns the system user's name, or the ID, because a container may run as a user without a name. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
