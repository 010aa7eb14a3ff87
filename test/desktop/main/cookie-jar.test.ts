import { expect } from 'chai';
import { CookieJar, deviceCookies } from '../../../desktop/main/cookie-jar.ts';

describe("a session's cookie jar", () => {
  it("contains only the core's cookies", () => {
    const jar = new CookieJar({ tracking: 'stored' });
    jar.update(['callkey_session_0a1b2c3d=a; path=/; httponly', 'callkey_session_0a1b2c3d.sig=b', 'tracking=c', 'not a cookie']);
    expect(jar.all()).to.deep.equal({ callkey_session_0a1b2c3d: 'a', 'callkey_session_0a1b2c3d.sig': 'b' });
  });

  it('uses cookie names with a prefix over HTTPS', () => {
    const jar = new CookieJar({});
    jar.update('__Host-callkey_session_0a1b2c3d=a; secure');
    expect(jar.header()).to.equal('__Host-callkey_session_0a1b2c3d=a');
  });

  it('keeps the cookies of a known device after the session ends', () => {
    const jar = new CookieJar({});
    jar.update(['__Host-callkey_session_0a1b2c3d=a', '__Host-callkey_device_0a1b2c3d=b', '__Host-callkey_device_0a1b2c3d.sig=c']);
    expect(deviceCookies(jar.all())).to.deep.equal({ '__Host-callkey_device_0a1b2c3d': 'b', '__Host-callkey_device_0a1b2c3d.sig': 'c' });
  });

  it('replaces cookies with the same name, and deletes empty ones', () => {
    const jar = new CookieJar({ callkey_session_0a1b2c3d: 'old', 'callkey_session_0a1b2c3d.sig': 'old' });
    jar.update(['callkey_session_0a1b2c3d=new', 'callkey_session_0a1b2c3d.sig=; expires=Thu, 01 Jan 1970 00:00:00 GMT']);
    expect(jar.header()).to.equal('callkey_session_0a1b2c3d=new');
  });
});
