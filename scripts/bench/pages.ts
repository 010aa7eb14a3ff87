/**
 * Writes sections into a page of Markdown, between the comments `<!-- bench NAME -->` and `<!-- /bench -->`. Marks of other names keep
 * what is between them.
 */
export function fillIn(page: string, sections: Readonly<Record<string, string>>): string {
  return page.replace(/(<!-- bench (\S+) -->\n)(.*?)(<!-- \/bench -->)/gs, (all, begin: string, name: string, _old, end: string) => {
    const text = sections[name];
    return text === undefined ? all : `${begin}\n${text.trim()}\n\n${end}`;
  });
}
