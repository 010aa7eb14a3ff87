import { expect } from 'chai';
import { findTimeZone } from '#contract/time-zones.ts';
import { getCountry, getNumberKind, getZones } from '../../core/domain/protection/numbers.ts';

describe("a number's kind", () => {
  const kinds: [phone: string, kind: string, why: string][] = [
    ['+493012345678', 'ordinary', 'a landline'],
    ['+4915112345678', 'ordinary', 'a mobile number'],
    ['+498001234567', 'ordinary', 'a free number'],
    ['+4990011234567', 'premium-rate', ''],
    ['+49900112345678', 'premium-rate', 'with a digit too many'],
    ['+499001123456', 'premium-rate', 'with a digit too few'],
    ['+19005551234', 'premium-rate', ''],
    ['+190055512345', 'premium-rate', 'with a digit too many'],
    ['+449012345678', 'premium-rate', ''],
    ['+979123456789', 'premium-rate', 'in all countries'],
    ['+491805123456', 'shared-cost', ''],
    ['+80812345678', 'shared-cost', 'in all countries'],
    ['+4970012345678', 'personal', ''],
    ['+447012345678', 'personal', ''],
    ['+15005550006', 'personal', ''],
    ['+881612345678', 'satellite', ''],
    ['+870773111632', 'satellite', ''],
    ['+88216123456', 'satellite', 'of another international network'],
    ['+999123456', 'ordinary', 'without a known country code'],
  ];
  for (const [phone, kind, why] of kinds)
    it(`is ${kind} for ${phone}${why && `, ${why}`}`, () => expect(getNumberKind(phone)).to.equal(kind));
});

describe("a number's country", () => {
  const countries: [string, string | null][] = [
    ['+493012345678', 'DE'],
    ['+12125551234', 'US'],
    ['+14165551234', 'CA'],
    ['+18765551234', 'JM'],
    ['+79161234567', 'RU'],
    ['+77012345678', 'KZ'],
    ['+447624123456', 'IM'],
    ['+390612345678', 'IT'],
    ['+390669812345', 'VA'],
    ['+881612345678', null],
    ['+999123456', null],
  ];
  for (const [phone, country] of countries) it(`is ${country} for ${phone}`, () => expect(getCountry(phone)).to.equal(country));
});

describe("a number's time zones", () => {
  it('are those of its longest known prefix', () => {
    expect(getZones('+493012345678')).to.deep.equal(['Europe/Berlin']);
    expect(getZones('+12085551234')).to.deep.equal(['America/Boise', 'America/Los_Angeles']);
    expect(getZones('+12084011234')).to.deep.equal(['America/Denver']);
    // Release 8.13.51 of the data was wrong here.
    expect(getZones('+81312345678')).to.deep.equal(['Asia/Tokyo']);
  });

  it('are unknown for a toll-free number, a satellite number and an unknown prefix', () => {
    for (const phone of ['+18005551234', '+999123456', '+881612345678']) expect(getZones(phone), phone).to.deep.equal([]);
  });

  it('are all known to the runtime', () => {
    for (let prefix = 1; prefix < 10_000; prefix++) {
      const unknown = getZones(`+${prefix}00000000`).filter((zone) => findTimeZone(zone) === null);
      expect(unknown, `+${prefix}`).to.deep.equal([]);
    }
  });

  it('are returned as the same array for numbers with the same zones', () => {
    expect(getZones('+493012345678')).to.equal(getZones('+498912345678'));
  });
});
