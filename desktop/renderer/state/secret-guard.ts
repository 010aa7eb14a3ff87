import { useLayoutEffect } from 'preact/hooks';
import type { ConsoleRoutes } from '#contract/routes.ts';

type SecretField = {
  [Name in keyof ConsoleRoutes]: ConsoleRoutes[Name] extends { secret: infer Field extends string } ? Field : never;
}[keyof ConsoleRoutes];
/** The fields of responses that contain a secret. The compiler reports a missing one. */
const secretFields: { readonly [Field in SecretField]: true } = { keyValue: true, password: true, secret: true, recoveryCodes: true };

let shown = 0;

/** Keeps the bridge's guard of a secret while the component shows it, and ends it afterwards, unless another component shows one by then. */
export function useSecretGuard(): void {
  useLayoutEffect(() => {
    shown += 1;
    return () => {
      shown -= 1;
      queueMicrotask(endUnusedGuard);
    };
  }, []);
}

/** Ends the guard of a secret in a response that arrived too late to be shown. */
export function dropUnshown(response: unknown): void {
  if (Object.keys(Object(response)).some((field) => field in secretFields)) endUnusedGuard();
}

function endUnusedGuard(): void {
  if (shown === 0) void window.callkey.dismissSecret();
}
