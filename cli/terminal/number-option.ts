import { InvalidArgumentError } from 'commander';

type Range = { min: number; max?: number; isWhole?: boolean };

/** Returns a parser for an option's number. */
export function numberOption({ min, max = Infinity, isWhole = false }: Range) {
  const kind = isWhole ? 'a whole number ' : '';
  return (text: string): number => {
    const number = Number(text);
    if (number >= min && number <= max && (isWhole ? Number.isInteger(number) : Number.isFinite(number))) return number;
    throw new InvalidArgumentError(max === Infinity ? `Must be ${min} or more.` : `Must be ${kind}from ${min} to ${max}.`);
  };
}
