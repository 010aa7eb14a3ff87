import type { EngineLocator, EnginePage } from '../engine-page.ts';

/** A screen of the console in one state. */
export type ScreenState<Shown extends EnginePage> = { name: string; page: Shown };

export type ScreenStates<Shown extends EnginePage> = AsyncGenerator<ScreenState<Shown>>;

/** Returns what all parts of the walkthrough use. */
export function createTour<Shown extends EnginePage>(page: Shown) {
  const stop = (name: string): ScreenState<Shown> => ({ name, page });
  const link = (name: string) => page.getByRole('link', { name, exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  return {
    page,
    stop,
    link,
    button,
    async proceed(screen: string): Promise<void> {
      await link(screen).click();
      await page.getByRole('heading', { name: screen, exact: true }).waitFor();
    },
    /** Clicks a button that opens or submits a dialog, and cancels the dialog once it shows `content`. */
    async *dialog(name: string, opener: string, content: EngineLocator): ScreenStates<Shown> {
      await button(opener).click();
      await content.waitFor();
      yield stop(name);
      await button('Cancel').click();
    },
    /** Replaces the secret on the page with dots. */
    coverUp: () =>
      page.evaluate(`((field) => {
        field.value = field.value.replace(/(?<=^svc_sk_live_.*|^(?!svc_).*)./g, '•');
      })(document.querySelector('#secret'))`),
  };
}

export type Tour<Shown extends EnginePage> = ReturnType<typeof createTour<Shown>>;
