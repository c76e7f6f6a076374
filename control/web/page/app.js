// The page: who is in, which place is shown, and how it is left.
//
//   location.hash "#shares/tank/mysql" ──▶ PLACES.shares(main, ["tank", "mysql"]) ──▶ a function that ends it
//
// A place draws itself into <main> and lives until the next one is shown. Nothing of a session is in the address.

import { button, fill, h, visible } from "./dom.js";
import { Fault, get, logOut, onSessionEnd, self, whoAmI } from "./api.js";
import { showLogin } from "./login.js";
import { showStatus } from "./status.js";
import { showShares } from "./shares.js";
import { showConfiguration } from "./configuration.js";
import { showMaintenance } from "./maintenance.js";
import { showAnalytics } from "./analytics.js";
import { say } from "./dialog.js";

/** @typedef {(main: HTMLElement, parts: string[], signal: AbortSignal) => void | Promise<void>} Place */

/** @type {Record<string, [string, Place]>} */
const PLACES = {
  status: ["Status", showStatus],
  shares: ["Shares", showShares],
  configuration: ["Configuration", showConfiguration],
  maintenance: ["Maintenance", showMaintenance],
  analytics: ["Analytics", showAnalytics],
};

const root = h("div", { id: "root" });
const main = h("main", { id: "main", tabIndex: -1 });
const nav = h("nav", { "aria-label": "Places" });
let shown = new AbortController();
let isIn = false;

const THEMES = ["auto", "light", "dark"];

function applyTheme() {
  const theme = localStorage.getItem("theme") ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

function themeButton() {
  const label = () => `Theme: ${localStorage.getItem("theme") ?? "auto"}`;
  const own = button(
    label(),
    () => {
      const now = THEMES.indexOf(localStorage.getItem("theme") ?? "auto");
      localStorage.setItem("theme", THEMES[(now + 1) % THEMES.length]);
      applyTheme();
      fill(own, label());
      window.dispatchEvent(new Event("theme"));
    },
    { class: "plain", id: "theme" },
  );
  return own;
}

async function frame() {
  const host = h("span", { class: "host" });
  const leave = button(
    "Log out",
    async () => {
      await logOut().catch(() => {});
      out("");
    },
    { class: "plain", id: "logout" },
  );
  fill(
    root,
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (/** @type {Event} */ e) => {
          e.preventDefault();
          main.focus();
        },
      },
      "Skip to content",
    ),
    h(
      "header",
      {},
      h("a", { class: "brand", href: "#status" }, "Cenote"),
      host,
      nav,
      h(
        "span",
        { class: "who" },
        themeButton(),
        h("a", { href: "#configuration/users", class: "user" }, self.user),
        leave,
      ),
    ),
    main,
  );
  fill(
    nav,
    Object.entries(PLACES).map(([key, [title]]) => h("a", { href: `#${key}`, id: `nav-${key}` }, title)),
  );
  get("/api/system/v1/version").then(
    ({ version }) => fill(host, visible(version.nodename)),
    () => {},
  );
}

async function show() {
  if (!isIn) return;
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const [key, ...parts] = location.hash.replace(/^#/, "").split("/").map(decodePart);
  const [title, place] = PLACES[key] ?? PLACES.status;
  document.title = `${title} \u2013 Cenote`;
  nav.querySelectorAll("a").forEach((a) => {
    if (a.id === `nav-${PLACES[key] ? key : "status"}`) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  });
  main.className = PLACES[key] ? key : "status";
  fill(main);
  if (!self.look) {
    fill(main, h("p", { class: "empty" }, "You have no role here: ask an administrator for one."));
    return;
  }
  try {
    await place(main, parts, signal);
  } catch (error) {
    if (signal.aborted) return;
    const message = error instanceof Fault ? error.message : `The page has failed: ${error}`;
    fill(main, h("p", { class: "problem", role: "alert" }, message), button("Try again", show));
    if (!(error instanceof Fault)) console.error(error);
  }
}

/** @param {string} part */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {string} why */
function out(why) {
  isIn = false;
  shown.abort();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  showLogin(root, why, begin);
}

async function begin() {
  try {
    isIn = await whoAmI();
  } catch (error) {
    fill(
      root,
      h(
        "main",
        { class: "login" },
        h("p", { class: "problem" }, /** @type {Error} */ (error).message),
        button("Try again", begin),
      ),
    );
    return;
  }
  if (!isIn) return out("");
  await frame();
  if (self.locked)
    say("You came in by a one-time code. Set a password under Configuration, Users to come back without one.");
  await show();
}

applyTheme();
document.body.append(root);
onSessionEnd(() => isIn && out("The session has ended: log in again."));
window.addEventListener("hashchange", show);
begin();
