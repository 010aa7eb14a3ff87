import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { Icon } from './icons.tsx';
import { place } from './tooltip.tsx';

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** Shows a button that opens a list of rarely used actions. Arrow keys move within it, and Escape closes it. */
export function Menu({ label = 'More', children }: { label?: string; children: ComponentChildren }) {
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const items = (menu: HTMLElement) => [...menu.querySelectorAll<HTMLElement>('button, a')];
  return (
    <>
      <button ref={opener} type="button" popoverTarget={id}>
        {label} <Icon name="down" />
      </button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Handles what bubbles from its buttons. */}
      <div
        id={id}
        class="menu"
        popover="auto"
        onToggle={({ currentTarget, newState }) => {
          if (newState !== 'open' || !opener.current) return;
          place(currentTarget, opener.current, 'below');
          items(currentTarget)[0]?.focus();
        }}
        onClick={({ currentTarget }) => currentTarget.hidePopover()}
        onKeyDown={(event) => {
          const { key, currentTarget, target } = event;
          const step = steps[key];
          // Otherwise, Escape would also close the details around it.
          if (key === 'Escape') currentTarget.hidePopover();
          else if (step !== undefined && target instanceof HTMLElement) {
            const all = items(currentTarget);
            all.at((all.indexOf(target) + step) % all.length)?.focus();
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {children}
      </div>
    </>
  );
}

const small = matchMedia('(width < 40rem), (height < 36rem)');

/** Whether the window is so small, or zoomed so much, that what's rarely used must leave the room to the list. */
export const isSmall = signal(small.matches);

small.addEventListener('change', ({ matches }) => {
  isSmall.value = matches;
});

/** Shows actions next to each other, or in a menu if there's no room for them. */
export function Rare({ children }: { children: ComponentChildren }): ComponentChildren {
  return isSmall.value ? <Menu>{children}</Menu> : children;
}
