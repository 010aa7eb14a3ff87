import { useEffect, useRef } from 'preact/hooks';

const margin = 6;

/**
 * One tooltip for everything that carries a `data-tip`: it shows on hover and on focus, can be pointed at, and goes with Escape
 * (WCAG 2.2, 1.4.13).
 */
export function Tooltip() {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const tip = ref.current;
    return tip ? follow(tip) : undefined;
  }, []);
  return <div ref={ref} id="tooltip" class="tooltip" role="tooltip" popover="manual" />;
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
    tip.textContent = element.dataset['tip'] ?? '';
    element.setAttribute('aria-describedby', tip.id);
    // It belongs to the part of the page that it explains, and a modal dialog leaves out all other parts.
    (element.closest('dialog, main, header') ?? document.body).append(tip);
    tip.showPopover();
    place(tip, element);
  };
  const enter = ({ target }: Event) => {
    if (!(target instanceof Element) || tip.contains(target)) return;
    const element = target.closest<HTMLElement>('[data-tip]');
    if (element) show(element);
    else if (owner && owner !== document.activeElement) hide();
  };
  const leave = () => hide();
  const hideOnEscape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !owner) return;
    hide();
    // The dialog around it stays.
    event.preventDefault();
    event.stopPropagation();
  };

  const off = new AbortController();
  const options = { signal: off.signal };
  document.addEventListener('pointerover', enter, options);
  document.addEventListener('focusin', enter, options);
  document.addEventListener('focusout', leave, options);
  document.addEventListener('scroll', leave, { ...options, capture: true });
  document.addEventListener('keydown', hideOnEscape, { ...options, capture: true });
  return () => off.abort();
}

/** Above the element, or below it where there is no room, and within the window. */
function place(tip: HTMLElement, element: HTMLElement): void {
  const around = element.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const above = around.top - height - margin;
  const left = Math.min(Math.max(margin, around.left), window.innerWidth - width - margin);
  tip.style.left = `${left}px`;
  tip.style.top = `${above < margin ? around.bottom + margin : above}px`;
}
