import type { ComponentChildren } from 'preact';
import type { ScreenProps } from '../../state/navigation.ts';
import type { ProtectionView } from './protection-view.ts';
import type { NamedScope } from './scope-select.tsx';

/** The props of each tab, which shows its own page with the tabs at the top. */
export type TabProps = ScreenProps & {
  home: NamedScope;
  /** Account users see everything about their account, but can only add numbers. */
  canChange: boolean;
  view: ProtectionView;
  onView: (changes: Partial<ProtectionView>) => void;
  tabs: ComponentChildren;
  check: ComponentChildren;
};
