import { useEffect, useRef } from 'preact/hooks';

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
  return element.dataset['tip'] ?? (element.scrollWidth > element.clientWidth ? (element.textContent ?? '') : '');
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
