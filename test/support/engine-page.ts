import type { Page } from 'playwright-core';

type Named = { name?: string | RegExp; exact?: boolean };
type Exact = { exact?: boolean };
type Role = Parameters<Page['getByRole']>[0];

type Finder = {
  getByRole(role: Role, options?: Named): EngineLocator;
  getByLabel(text: string, options?: Exact): EngineLocator;
  getByText(text: string | RegExp, options?: Exact): EngineLocator;
  locator(selector: string): EngineLocator;
};

/** The part of Playwright's locators that the tests of all engines use. `test/desktop/engines/page.ts` implements it for other engines. */
export type EngineLocator = Finder & {
  first(): EngineLocator;
  last(): EngineLocator;
  waitFor(options?: { state?: 'visible' | 'detached' }): Promise<void>;
  click(): Promise<void>;
  check(): Promise<void>;
  fill(text: string): Promise<void>;
  focus(): Promise<void>;
  selectOption(label: string): Promise<unknown>;
  inputValue(): Promise<string>;
};

/** The part of Playwright's page that these tests use. */
export type EnginePage = Finder & {
  keyboard: { press(key: string): Promise<void> };
  /** Evaluates an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
};
