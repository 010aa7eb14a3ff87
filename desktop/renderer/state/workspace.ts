import type { SessionView } from '#contract/console/session.ts';

/** Returns the name of the viewer's workspace: the selected tenancy, or the viewer's own account or partner. */
export function workspaceName({ viewer, tenancy }: SessionView): string {
  if (viewer.userType === 'staff') return tenancy?.name ?? 'None selected';
  return viewer.account?.name ?? viewer.partner?.name ?? '';
}

/** Returns the selected tenancy's name, along with an account's partner, because two accounts may have the same name. */
export function formatWorkspace(session: SessionView): string {
  return [workspaceName(session), tenancyPartner(session)].filter((name) => name !== '').join(', ');
}

/** Returns the partner of the selected account; empty if no account is selected. */
export function tenancyPartner({ tenancy }: SessionView): string {
  return tenancy?.partnerName ?? '';
}

/** Returns a server's address without its scheme: "calls.example.com". */
export function serverHost(server: string): string {
  return server.replace(/^https?:\/\//, '').replace(/\/+$/, '');
}

/** Builds the window title: "API keys · Blue Clinic · calls.example.com". */
export function windowTitle(screen: string, session: SessionView, server: string): string {
  return [screen, formatWorkspace(session), serverHost(server)].filter((part) => part !== '').join(' · ');
}
