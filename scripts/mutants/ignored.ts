/** What Stryker asks of a plugin, and of Babel's paths to the nodes of a file. */
type Path = { node: { type: string; quasis?: readonly { value: { raw: string } }[] } };

const keyword =
  /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|CASE|WHEN|VALUES|PRAGMA|JOIN|CREATE|DROP|BEGIN|COMMIT|ROLLBACK|IS NULL)\b/;

/** SQL: no statement is left without its text, and no part of it is a mutant of its own. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'sql',
    value: {
      shouldIgnore({ node }: Path): string | undefined {
        const isSql = node.type === 'TemplateLiteral' && node.quasis?.some(({ value }) => keyword.test(value.raw));
        return isSql === true ? 'SQL' : undefined;
      },
    },
  },
];
