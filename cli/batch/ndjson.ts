import { parseJson } from '#contract/json.ts';
import type { Row } from './row.ts';

/** Each line is the body of one request. */
export function readNdjson(text: string): Row[] {
  return text.split('\n').flatMap((content, index): Row[] => {
    if (content.trim() === '') return [];
    const line = index + 1;
    const input = parseJson(content);
    return [input === undefined ? { line, reason: 'This is not JSON.' } : { line, input }];
  });
}
