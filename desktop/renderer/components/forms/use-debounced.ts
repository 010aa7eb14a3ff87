import { useEffect, useState } from 'preact/hooks';

/** Returns the value, but a new one only after it hasn't changed for this long. */
export function useDebounced(value: string, ms: number): string {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
