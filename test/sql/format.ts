/** The keywords that start a line. Longer ones come first: `left join` must not be split before `join`. */
const clauses = [
  ...['with recursive', 'with', 'insert into', 'update', 'delete from', 'select distinct', 'select', 'from', 'where', 'group by'],
  ...['having', 'order by', 'limit', 'left join', 'inner join', 'cross join', 'join', 'values', 'set', 'on conflict', 'do update set'],
  ...['returning', 'union all', 'for update', 'for no key update', 'and', 'or'],
].toSorted((a, b) => b.length - a.length);
const words = [String.raw`between \S+ and`, ...clauses, 'case', 'when', 'else', 'end'].join('|');
const tokens = new RegExp(String.raw`'[^']*'|"[^"]*"|\`[^\`]*\`|\b(?:${words})\b|[^\s()'"\`,]+|[(),]|\s`, 'gi');
const longestLine = 110;
const longestCase = 90;
const manyValues = /(\?|\$\d+)(, (\?|\$\d+)){20,}/g;

type Block = { kind: 'statement' | 'query' | 'list' | 'arguments' | 'case' | 'short case'; indent: number; clause: string };

/** Formats a statement for people to read: one line per clause and condition, indented per subquery. */
export function formatSql(sql: string): string {
  const parts = sql.trim().replace(/\s+/g, ' ').replace(/\( /g, '(').replace(/ \)/g, ')').replace(manyValues, '$1, …').match(tokens) ?? [];
  const lines: string[] = [];
  let block: Block = { kind: 'statement', indent: 0, clause: '' };
  const outer: Block[] = [];
  let line = '';
  const countIndent = (text: string) => text.search(/\S|$/) / 2;
  function breakLine(indent: number): void {
    if (line.trim() !== '') lines.push(line.trimEnd());
    line = '  '.repeat(indent);
  }
  function open(kind: Block['kind'], indent = block.indent): void {
    outer.push(block);
    block = { kind, indent, clause: '' };
  }
  function close(): Block {
    const closed = block;
    block = outer.pop() ?? block;
    return closed;
  }

  for (const [index, part] of parts.entries()) {
    const word = part.toLowerCase();
    const isQuery = block.kind === 'query' || block.kind === 'statement';
    if (line.length + part.length > longestLine && line.endsWith(', ') && block.kind !== 'arguments') breakLine(block.indent + 1);
    if (part === ')' || word === 'end') {
      const { kind, indent } = close();
      if (kind === 'query' || kind === 'case') breakLine(indent - 1);
    } else if (block.kind === 'case' && (word === 'when' || word === 'else')) {
      breakLine(block.indent);
    } else if (isQuery && clauses.includes(word)) {
      const isCondition = word === 'and' || word === 'or';
      if (!isCondition) breakLine(block.indent);
      else if (block.clause !== 'select') breakLine(block.indent + 1);
      if (!isCondition) block.clause = word;
    }
    line += line.trim() === '' ? part.trimStart() : part;
    if (word === 'case') open(lengthOfCase(parts.slice(index)) > longestCase ? 'case' : 'short case', countIndent(line) + 1);
    if (part === '(') {
      const [next = ''] = parts.slice(index + 1);
      if (/^(select|with|insert|delete|update)\b/i.test(next)) open('query', countIndent(line) + 1);
      else open(/\w\($/.test(line) ? 'arguments' : 'list');
    }
  }
  breakLine(0);
  return `${lines.join('\n')};`;
}

function lengthOfCase(parts: readonly string[]): number {
  let cases = 0;
  const end = parts.findIndex((part) => {
    if (/^case$/i.test(part)) cases++;
    if (/^end$/i.test(part)) cases--;
    return cases === 0;
  });
  return parts.slice(0, end + 1).join('').length;
}
