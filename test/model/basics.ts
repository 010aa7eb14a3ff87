import { type ProblemCode, problemTable } from '#contract/problems.ts';

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** Rows by their IDs. Rows are never changed, only replaced, because copying them for each copy of the model took much of a walk's time. */
export class Table<Row extends { id: string }> extends Map<string, Row> {
  require(id: string): Row {
    const row = this.get(id);
    if (!row) throw new Error(`The model doesn't have ${id}.`);
    return row;
  }

  change(id: string, changes: Partial<Row>): Row {
    const changed = { ...this.require(id), ...changes };
    this.set(id, changed);
    return changed;
  }
}

/**
 * What the model expects of a response. Omitted fields may have any value. For a change that returns undefined, the model expects only the
 * usual status of the HTTP method.
 */
export type Expected = {
  status?: number;
  code?: ProblemCode;
  text?: string;
  replayed?: boolean;
  json?: object;
  /** How many calls the key can still place today, from the header `RateLimit`. Null if the response doesn't have it. */
  quota?: string | null | undefined;
};

export class Refused extends Error {
  expected: Expected = {};
}

/** Refuses a request, before it has changed anything. */
export function refuse(code: ProblemCode, quota?: string | null): never {
  throw Object.assign(new Refused(code), { expected: { status: problemTable[code].status, code, quota } });
}
