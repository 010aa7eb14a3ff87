import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icons.tsx';

const margin = 6;

/** Shows an element's `data-tip`, or the text of a `clip` that doesn't fit, on hover and focus until Escape (WCAG 2.2, 1.4.13). */
export function Tooltip() {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const tip = ref.current;
    return tip ? follow(tip) : undefined;
  }, []);
  return <div ref={ref} id="tooltip" class="tooltip" role="tooltip" popover="manual" />;
}

function textFor(element: HTMLElement): string {
  const { dataset, scrollWidth, clientWidth } = element;
  const whole = element.closest('.clip-middle') ?? element;
  return dataset['tip'] ?? (scrollWidth > clientWidth ? (whole.textContent ?? '') : '');
}

/** Returns the innermost element around this one that has a tooltip. */
function findOwner(inner: Element | null): HTMLElement | null {
  const element = inner?.closest<HTMLElement>('[data-tip], .clip') ?? null;
  return element && textFor(element) === '' ? findOwner(element.parentElement) : element;
}

function follow(tip: HTMLElement): () => void {
  let owner: HTMLElement | null = null;

  const hide = () => {
    owner?.removeAttribute('aria-describedby');
    owner = null;
    if (tip.matches(':popover-open')) tip.hidePopover();
  };
  const show = (element: HTMLElement) => {
    if (element === owner) return;
    hide();
    owner = element;
    tip.textContent = textFor(element);
    element.setAttribute('aria-describedby', tip.id);
    // If the element is in a dialog, so is the tooltip, because a modal dialog makes everything outside it inert.
    (element.closest('dialog, main, header') ?? document.body).append(tip);
    tip.showPopover();
    place(tip, element);
  };
  const enter = ({ target }: Event) => {
    if (!(target instanceof Element) || tip.contains(target)) return;
    const element = findOwner(target);
    if (element) show(element);
    else if (owner && owner !== document.activeElement) hide();
  };
  const leave = () => hide();
  // Focusing an element can scroll the page. The element's tooltip must then move with it instead of disappearing.
  const scroll = () => {
    if (owner && owner === document.activeElement) place(tip, owner);
    else hide();
  };
  const hideOnEscape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !owner) return;
    hide();
    // Otherwise, the same Escape would close the dialog around it.
    event.preventDefault();
    event.stopPropagation();
  };

  const off = new AbortController();
  const options = { signal: off.signal };
  document.addEventListener('pointerover', enter, options);
  document.addEventListener('focusin', enter, options);
  document.addEventListener('focusout', leave, options);
  document.addEventListener('scroll', scroll, { ...options, capture: true });
  document.addEventListener('keydown', hideOnEscape, { ...options, capture: true });
  return () => off.abort();
}

/** Places a popover above or below an element, or on the other side if there's no room, and always inside the window. */
export function place(popover: HTMLElement, element: HTMLElement, side: 'above' | 'below' = 'above'): void {
  const around = element.getBoundingClientRect();
  const { width, height } = popover.getBoundingClientRect();
  const above = around.top - height - margin;
  const below = around.bottom + margin;
  const isAbove = side === 'above' ? above >= margin : below + height > window.innerHeight && above >= margin;
  popover.style.left = `${Math.min(Math.max(margin, around.left), window.innerWidth - width - margin)}px`;
  popover.style.top = `${isAbove ? above : below}px`;
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** Shows a button that opens a list of rarely used actions. Arrow keys move within it, and Escape closes it. */
export function Menu({ children }: { children: ComponentChildren }) {
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const items = (menu: HTMLElement) => [...menu.querySelectorAll<HTMLElement>('button, a')];
  return (
    <>
      <button ref={opener} type="button" popoverTarget={id}>
        More <Icon name="down" />
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
