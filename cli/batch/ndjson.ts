import { parseJson } from '../durable-file.ts';
import type { Row } from './call-file.ts';

/** A call a line, each as the body of its request. */
export function readNdjson(text: string): Row[] {
  return text.split('\n').flatMap((content, index): Row[] => {
    if (content.trim() === '') return [];
    const line = index + 1;
    const input = parseJson(content);
    return [input === undefined ? { line, reason: 'This is not JSON.' } : { line, input }];
  });
}
