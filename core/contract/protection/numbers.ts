import { z } from 'zod';

/** The kinds of numbers that are refused unless a partner or account allows them. All other numbers are `ordinary`. */
export const restrictedKinds = ['premium-rate', 'shared-cost', 'satellite', 'personal'] as const;
export type RestrictedKind = (typeof restrictedKinds)[number];
export type NumberKind = RestrictedKind | 'ordinary';

export const restrictedKindLabels: Readonly<Record<RestrictedKind, string>> = {
  'premium-rate': 'Premium rate',
  'shared-cost': 'Shared cost',
  satellite: 'Satellite',
  personal: 'Personal numbers',
};

/** The labels at the start of a sentence, such as "Satellite numbers can't be called." */
export const restrictedKindNames: Readonly<Record<RestrictedKind, string>> = {
  'premium-rate': 'Premium-rate numbers',
  'shared-cost': 'Shared-cost numbers',
  satellite: 'Satellite numbers',
  personal: 'Personal numbers',
};

const kindsSchema = z
  .array(z.enum(restrictedKinds, { error: `Must be one of ${restrictedKinds.join(', ')}.` }))
  .max(restrictedKinds.length)
  .nullable()
  .meta({ description: "The restricted kinds that may be called. Null if this scope doesn't have its own setting." });

/** A country or territory, by its ISO 3166-1 code. */
export const countrySchema = z.string().regex(/^[A-Z]{2}$/, { error: 'Must be a two-letter country code, such as DE.' });

const countriesSchema = z
  .array(countrySchema)
  .max(300)
  .nullable()
  .meta({ description: "The countries that may be called. Empty for all. Null if this scope doesn't have its own setting." });

/** Which numbers an account, or all accounts of a partner, may call. */
export const numberRulesSchema = z.strictObject({ countries: countriesSchema, kinds: kindsSchema });
export type NumberRules = z.infer<typeof numberRulesSchema>;
