import type { UserView } from '#contract/console/users.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { server } from '../../state/session.ts';

/** Shows the text of a message to a new user. The password isn't included, because it should be sent separately. */
export function Invitation({ user }: { user: UserView }) {
  const text = buildInvitation(user, server.value);
  return (
    <div class="field">
      <div class="label-row">
        <h3>Invitation</h3>
        <CopyButton text={text} noun="invitation" />
      </div>
      <pre>{text}</pre>
      <p class="hint">The password isn’t included. Send it separately.</p>
    </div>
  );
}

function buildInvitation({ name, email }: Pick<UserView, 'name' | 'email'>, address: string): string {
  return `Hello ${name},

You can now sign in to Callkey:

${address}
Email: ${email}

You’ll get a one-time password separately. When you sign in, you’ll choose your own.`;
}
