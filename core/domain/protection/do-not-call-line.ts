import { z } from 'zod';
import { limits } from '#contract/limits.ts';
import { doNotCallReasonLabels, doNotCallReasonSchema, doNotCallReasons, doNotCallSources } from '#contract/protection/do-not-call.ts';
import { csvLineReader } from '#contract/text/csv.ts';
import { instantSchema, lineSchema, parseTimestamp } from '#contract/text/text.ts';
import { instant } from '../instant.ts';
import type { ImportedNumber } from '../model.ts';

/** The columns of an exported list that an import keeps. */
const columns = { Reason: 'reason', Note: 'note', Source: 'source', Added: 'createdAt', Ends: 'endsAt' } as const;

const time = instantSchema.transform((text) => instant(parseTimestamp(text)));

const detailsSchema = z.object({
  reason: z
    .preprocess((text) => doNotCallReasons.find((each) => doNotCallReasonLabels[each] === text) ?? text, doNotCallReasonSchema)
    .exactOptional(),
  note: lineSchema(limits.name).exactOptional(),
  source: z.enum(doNotCallSources, { error: `Must be one of ${doNotCallSources.join(', ')}.` }).exactOptional(),
  createdAt: time.exactOptional(),
  endsAt: time.exactOptional(),
});

type Details = Omit<ImportedNumber, 'phone'>;

/**
 * Returns a function that reads a line of an exported list: the details of the number in its columns, or a message if one of them is
 * invalid.
 */
export function detailsReader(header: string): (line: string) => Details | string {
  const readCells = csvLineReader((['\t', ';'] as const).find((delimiter) => header.includes(delimiter)) ?? ',');
  const names = readCells(header);
  const kept = Object.entries(columns).flatMap(([name, key]) => (names.includes(name) ? [{ name, key, index: names.indexOf(name) }] : []));
  if (kept.length === 0) return () => ({});
  return (line) => {
    const cells = readCells(line);
    const { data, error } = detailsSchema.safeParse(
      Object.fromEntries(kept.flatMap(({ key, index }) => (cells[index] ? [[key, cells[index]]] : []))),
    );
    if (data) return data;
    const [issue] = error.issues;
    return `${kept.find(({ key }) => key === issue?.path[0])?.name}: ${issue?.message}`;
  };
}
