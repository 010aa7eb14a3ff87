/** A value for the beginnings of phone numbers. `next` has a branch for each further digit. */
type Node<Value> = { value: Value | undefined; next: Node<Value>[] };

export type PrefixTree<Value> = {
  /** @param prefix digits, which may follow a plus sign; `''` is the beginning of all numbers */
  set(prefix: string, value: Value): void;
  /** Returns the value of the longest prefix of a number in E.164; undefined if it has none. */
  findLongest(phone: string): Value | undefined;
};

/** Finds the longest prefix in a single pass through the digits. Looking up each prefix in a map took ten times as long. */
export function prefixTree<Value>(): PrefixTree<Value> {
  const root: Node<Value> = { value: undefined, next: [] };
  return {
    set(prefix, value) {
      let node = root;
      for (let index = prefix.startsWith('+') ? 1 : 0; index < prefix.length; index++) {
        const digit = digitAt(prefix, index);
        const next = node.next[digit] ?? { value: undefined, next: [] };
        node.next[digit] = next;
        node = next;
      }
      node.value = value;
    },
    findLongest(phone) {
      let node: Node<Value> | undefined = root;
      let longest = root.value;
      for (let index = 1; node && index <= phone.length; index++) {
        longest = node.value ?? longest;
        node = node.next[digitAt(phone, index)];
      }
      return longest;
    },
  };
}

function digitAt(text: string, index: number): number {
  return text.charCodeAt(index) - 48;
}
