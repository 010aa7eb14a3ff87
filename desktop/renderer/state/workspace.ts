import type { SessionView } from '#contract/console.ts';

/** The name of what the viewer is working in: the selected tenancy, or the viewer's own account or partner. */
export function workspaceName({ viewer, tenancy }: SessionView): string {
  if (viewer.userType === 'staff') return tenancy?.name ?? 'None selected';
  return viewer.account?.name ?? viewer.partner?.name ?? '';
}

/** Names the selected tenancy, and the partner of a selected account, because two accounts may share a name. */
export function fullPlaceOf(session: SessionView): string {
  return [workspaceName(session), partnerOf(session)].filter((name) => name !== '').join(', ');
}

/** The partner of the selected account; empty if there is none. */
export function partnerOf({ tenancy }: SessionView): string {
  return tenancy?.partnerName ?? '';
}

/** A server's address without its scheme: "calls.example.com". */
export function serverHost(server: string): string {
  return server.replace(/^https?:\/\//, '').replace(/\/+$/, '');
}

/** The window title: "API keys · Blue Clinic · calls.example.com". */
export function windowTitle(screen: string, session: SessionView, server: string): string {
  return [screen, fullPlaceOf(session), serverHost(server)].filter((part) => part !== '').join(' · ');
}
