import { expect } from 'chai';
import { CookieJar, deviceCookies } from '../../../desktop/main/cookie-jar.ts';

describe("a session's cookie jar", () => {
  it("contains only the core's cookies", () => {
    const jar = new CookieJar({ tracking: 'stored' });
    jar.update(['callkey_session=a; path=/; httponly', 'callkey_session.sig=b', 'tracking=c', 'not a cookie']);
    expect(jar.all()).to.deep.equal({ callkey_session: 'a', 'callkey_session.sig': 'b' });
  });

  it('uses cookie names with a prefix over HTTPS', () => {
    const jar = new CookieJar({});
    jar.update('__Host-callkey_session=a; secure');
    expect(jar.header()).to.equal('__Host-callkey_session=a');
  });

  it('keeps the cookies of a known device after the session ends', () => {
    const jar = new CookieJar({});
    jar.update(['__Host-callkey_session=a', '__Host-callkey_device=b', '__Host-callkey_device.sig=c']);
    expect(deviceCookies(jar.all())).to.deep.equal({ '__Host-callkey_device': 'b', '__Host-callkey_device.sig': 'c' });
  });

  it('replaces cookies with the same name, and deletes empty ones', () => {
    const jar = new CookieJar({ callkey_session: 'old', 'callkey_session.sig': 'old' });
    jar.update(['callkey_session=new', 'callkey_session.sig=; expires=Thu, 01 Jan 1970 00:00:00 GMT']);
    expect(jar.header()).to.equal('callkey_session=new');
  });
});
