// A menu at a place: by the right button, the menu key, or a button; arrows move, Enter chooses, Escape leaves.

import { h, visible } from "./dom.js";

/** @typedef {{label: string, act?: () => void, heading?: boolean}} Item */

/** @type {HTMLElement | null} */
let open = null;
/** @type {HTMLElement | null} */
let opener = null;

export function closeMenu() {
  open?.remove();
  open = null;
  opener?.focus();
  opener = null;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {Item[]} items
 * @param {HTMLElement | null} from what gets the focus back
 */
export function showMenu(x, y, items, from) {
  closeMenu();
  opener = from;
  const entries = items.map((item) =>
    item.heading
      ? h("p", { class: "menu-heading" }, visible(item.label))
      : h(
          "button",
          {
            type: "button",
            role: "menuitem",
            tabIndex: -1,
            onclick: () => {
              closeMenu();
              item.act?.();
            },
          },
          visible(item.label),
        ),
  );
  const menu = h("div", { class: "menu", role: "menu", onkeydown: keys }, entries);
  open = menu;
  document.body.append(menu);
  const box = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, innerHeight - box.height - 4))}px`;
  menu.querySelector("button")?.focus();
  setTimeout(() => document.addEventListener("pointerdown", outside), 0);
}

/** @param {Event} event */
function outside(event) {
  if (open && event.target instanceof Node && open.contains(event.target)) return;
  document.removeEventListener("pointerdown", outside);
  closeMenu();
}

/** @param {KeyboardEvent} event */
function keys(event) {
  const all = Array.from(open?.querySelectorAll("button") ?? []);
  const own = all.indexOf(/** @type {any} */ (document.activeElement));
  const to = { ArrowDown: own + 1, ArrowUp: own - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to !== undefined) all[(to + all.length) % all.length]?.focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
