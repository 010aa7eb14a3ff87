import type { SessionView } from '#contract/console/session.ts';
import { type ScreenName, screensFor, shortcutAt } from '../../../screens.ts';
import { Icon } from '../../components/icons.tsx';
import { MarkIcon } from '../../components/mark.tsx';
import { formatAddress } from '../../state/address/addresses.ts';
import { formatMembership, userTypeLabels } from '../../state/format/labels.ts';
import { openDialog } from '../../state/navigation.ts';
import { serverName } from '../../state/server-marks.ts';
import { server, signOut } from '../../state/session.ts';
import { describeUpdate } from '../../state/versions.ts';
import { serverHost, tenancyPartner, workspaceName } from '../../state/workspace.ts';

type SidebarProps = { session: SessionView; current: ScreenName; onPalette: () => void };

const isMac = navigator.userAgent.includes('Mac OS');

const opens = (dialog: typeof openDialog.value) => () => {
  openDialog.value = dialog;
};

/** Shows the navigation, with the current screen marked. */
export function Sidebar({ session, current, onPalette }: SidebarProps) {
  return (
    <header class="sidebar">
      <Workspace session={session} />
      <nav aria-label="Screens">
        <ul>
          {screensFor(session.viewer).map(({ name, icon, label }, index) => (
            <li key={name}>
              <a class="button" href={formatAddress(name, null)} aria-current={name === current ? 'page' : undefined}>
                <Icon name={icon} />
                {label}
                {window.callkey.capabilities.hasMenu && (
                  <span class="keys" aria-hidden="true">
                    {shortcutAt(index).replace('CmdOrCtrl+', isMac ? '⌘' : 'Ctrl ')}
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <button type="button" class="go-to" onClick={onPalette}>
        <Icon name="search" />
        Go to…
        <span class="keys" aria-hidden="true">
          {isMac ? '⌘K' : 'Ctrl K'}
        </span>
      </button>
      <ViewerPanel session={session} />
    </header>
  );
}

/** Shows the viewer's tenancy and the server. Staff can switch the tenancy here. */
function Workspace({ session }: { session: SessionView }) {
  const names = (
    <span>
      <span class="name clip">{workspaceName(session)}</span>
      {tenancyPartner(session) !== '' && <span class="caption clip">{tenancyPartner(session)}</span>}
      <span class="caption clip" data-tip={serverHost(server.value)}>
        {serverName(server.value)}
      </span>
    </span>
  );
  if (session.viewer.userType !== 'staff') {
    return (
      <div class="place mark">
        <MarkIcon />
        {names}
      </div>
    );
  }
  return (
    <button type="button" class="place mark" onClick={opens('switch-tenancy')}>
      <MarkIcon />
      {names}
      <Icon name="switch" />
    </button>
  );
}

function ViewerPanel({ session: { viewer, version } }: { session: SessionView }) {
  const membership = formatMembership(viewer);
  const update = describeUpdate(version);
  return (
    <div class="who">
      <p>
        <span class="name clip">{viewer.name}</span>
        <span class="caption">
          {userTypeLabels[viewer.userType]}
          {membership === '' ? '' : ` · ${membership}`}
        </span>
      </p>
      {update !== null && (
        <p class="caption" role="status">
          {update}
        </p>
      )}
      {window.callkey.capabilities.choosesServer && (
        <button type="button" class="quiet" onClick={opens('switch-server')}>
          Switch server
        </button>
      )}
      <button type="button" class="quiet" onClick={opens('help')}>
        Help
      </button>
      <button type="button" class="quiet" onClick={opens('your-account')}>
        Your account
      </button>
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </div>
  );
}
