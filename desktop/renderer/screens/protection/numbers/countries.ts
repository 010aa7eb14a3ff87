const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

/** Reads country codes: "de, AT ch". */
export function readCountries(text: string): string[] {
  return [
    ...new Set(
      text
        .toUpperCase()
        .split(/[\s,;]+/)
        .filter((code) => code !== ''),
    ),
  ];
}

/** Names countries: "Germany, Austria". */
export function describeCountries(codes: readonly string[]): string {
  return codes.map(nameCountry).join(', ');
}

export function nameCountry(code: string): string {
  return (/^[A-Z]{2}$/.test(code) && names.of(code)) || `${code} (unknown)`;
}
