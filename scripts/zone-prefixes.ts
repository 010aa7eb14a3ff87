// Generates core/domain/protection/hours/zone-prefixes.ts from libphonenumber's data. Download the newest release from
// https://github.com/google/libphonenumber, and pass its version and the path of resources/timezones/map_data.txt:
//   node scripts/zone-prefixes.ts 9.0.35 libphonenumber-9.0.35/resources/timezones/map_data.txt
// Then review the diff, because the data may be wrong: in 8.13.51, the release in Debian, Japan's numbers were in Shanghai's time zone.
import { readFileSync, writeFileSync } from 'node:fs';

const [version, file] = process.argv.slice(2);
if (version === undefined || file === undefined) throw new Error('Specify the version of libphonenumber and the path of its map_data.txt.');

const zonesByPrefix = parse(readFileSync(file, 'utf8'));
const published = zonesByPrefix.size;
// The North American plan has 25 countries, so its own entry, with the zones of all of them, says nothing about a toll-free number or an
// unknown area code.
zonesByPrefix.delete('1');
const prefixes = [...zonesByPrefix.keys().filter((prefix) => !isRedundant(prefix))];
const prefixesByZones = Map.groupBy(prefixes, (prefix) => zonesByPrefix.get(prefix) ?? '');
const lines = [...prefixesByZones].map(([zones, own]) => `${zones.replaceAll('&', ' ')}|${own.join(' ')}`).toSorted();

writeFileSync(
  'core/domain/protection/hours/zone-prefixes.ts',
  `// Made by scripts/zone-prefixes.ts from libphonenumber ${version}, resources/timezones/map_data.txt: edit the script instead.
// Copyright (C) 2012 The Libphonenumber Authors. Licensed under the Apache License, Version 2.0: see LICENSE.libphonenumber.

/**
 * Each line has time zones, and the beginnings of the numbers that may be in any of them, without the plus sign. The data has ${published}
 * prefixes. ${prefixes.length} are here: all but \`1\`, which has all zones of North America, and those with the same zones as the next shorter prefix.
 */
export const zonePrefixes = \`
${lines.join('\n')}
\`;
`,
);

function parse(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const [prefix = '', zones = ''] = line.split('|');
      if (!/^\d+$/.test(prefix) || !zones.split('&').every(isZone)) throw new Error(`This isn't a prefix with time zones: ${line}`);
      return [prefix, zones];
    }),
  );
}

/** The runtime must know the zone, or calling hours couldn't be computed. */
function isZone(name: string): boolean {
  new Intl.DateTimeFormat('en', { timeZone: name });
  return true;
}

/** Whether the next shorter prefix has the same zones. */
function isRedundant(prefix: string): boolean {
  for (let end = prefix.length - 1; end > 0; end--) {
    const zones = zonesByPrefix.get(prefix.slice(0, end));
    if (zones !== undefined) return zones === zonesByPrefix.get(prefix);
  }
  return false;
}
