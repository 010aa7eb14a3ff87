import { useEffect, useState } from 'preact/hooks';

/** The value, once it has not changed for so long. */
export function useDebounced(value: string, ms: number): string {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
