import type { Cores } from './cores.ts';
import { type Grown, type Lists, operations } from './growth.ts';
import { ratiosOf, type Spread, spreadOf } from './spread.ts';
import { type Row, thousandKeys } from './workloads.ts';

/** A figure that is not a share of bare Koa. `holds` says whether the goal is reached; null, that this machine cannot tell. */
export type Figure = { name: string; database: string; goal: string; value: string; holds: boolean | null; spread?: Spread };

export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
export const withRange = ({ median, min, max }: Spread) => `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;

/** A thousand keys in turn against ten, from the rows of one database. */
export function manyKeysShare(rows: readonly Row[], database: string): Figure[] {
  const of = (name: string) => rows.find((row) => row.name === name && row.database === database)?.perSecond;
  const [ten, thousand] = [of('place'), of(thousandKeys)];
  if (!ten || !thousand) return [];
  const spread = ratiosOf(thousand, ten);
  return [
    {
      name: 'place with a thousand keys in turn, of ten',
      database,
      goal: '≥ 0.90',
      value: withRange(spread),
      holds: spread.median >= 0.9,
      spread,
    },
  ];
}

/** The largest tables against the smallest. */
export function growthShares(grown: readonly Grown[], database: string): Figure[] {
  const sizes = grown.filter((row) => row.database === database);
  const [smallest, largest] = [sizes[0], sizes.at(-1)];
  if (!smallest || !largest) return [];
  return operations.map((operation) => {
    const spread = ratiosOf(largest[operation], smallest[operation]);
    const name = `${operation} with ${largest.size.toLocaleString('en')} keys and calls, of that with ${smallest.size.toLocaleString('en')}`;
    return { name, database, goal: '≥ 0.90', value: withRange(spread), holds: spread.median >= 0.9, spread };
  });
}

export function listShare({ database, of500, ofMillion }: Lists): Figure {
  const share = ofMillion.median / of500.median;
  const value = `${share.toFixed(2)} (${ms(ofMillion.median)} and ${ms(of500.median)})`;
  return { name: 'list of the newest 500 of a million keys, of 500', database, goal: '≤ 2', value, holds: share <= 2 };
}

export function placeP99(rows: readonly Row[], database: string): Figure {
  const p99Of = (name: string) => rows.find((row) => row.name === name && row.database === database)?.p99 ?? spreadOf([]);
  const spread = p99Of('place');
  const value = `${ms(spread.median)} (${ms(spread.min)} to ${ms(spread.max)}; bare Koa: ${ms(p99Of('bare Koa').median)})`;
  return { name: 'place, p99 with 64 connections', database, goal: '≤ 8 ms', value, holds: spread.median <= 8, spread };
}

/** Two cores can do more than one only where one leaves processors free. */
export function twoCores(cores: readonly Cores[]): Figure[] {
  const [one, two] = cores;
  if (!one || !two) return [];
  const share = ratiosOf(two.perSecond, one.perSecond);
  const isFull = one.busy.median > 0.8;
  const why = isFull ? `; one and its load keep ${Math.round(one.busy.median * 100)} % of the processors busy` : '';
  const holds = share.median >= 1.7 || (isFull ? null : false);
  return [
    {
      name: 'two cores on one PostgreSQL, of one',
      database: 'postgres',
      goal: '≥ 1.7',
      value: `${withRange(share)}${why}`,
      holds,
      spread: share,
    },
  ];
}
