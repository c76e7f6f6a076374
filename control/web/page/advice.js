// Advice: what is set wrong, each with what was seen, why it costs, what to change, and the way back.

import { fill, h, name, visible } from "./dom.js";
import { get } from "./api.js";
import { block } from "./configuration.js";
import { poll } from "./poll.js";

/**
 * @param {HTMLElement} into
 * @param {AbortSignal} signal
 */
export function advicePage(into, signal) {
  const all = h("div", { class: "part", role: "status" });
  fill(into, block("Advice", null, all));
  let shown = "";
  const work = async () => {
    const { advice } = await get("/api/doctor/v1/advice", signal);
    // What is the same is not read out again, and stays marked.
    const now = JSON.stringify(advice);
    if (now === shown) return;
    shown = now;
    fill(
      all,
      advice.length === 0
        ? h("p", { class: "empty" }, "Nothing to change.")
        : h(
            "p",
            { class: "hint" },
            "Nothing of this is changed by itself. What is a setting of a client is changed there; ",
            h("code", {}, "cenote doctor --apply"),
            " carries out what is a setting here.",
          ),
      advice.map(card),
    );
  };
  return poll(10000, signal, work, (error) => {
    shown = "";
    fill(all, h("p", { class: "problem" }, /** @type {Error} */ (error).message));
  });
}

/** @param {any} advice */
function card(advice) {
  return h(
    "section",
    { class: "card advice", "aria-label": `${advice.rule} of ${advice.about}`, "data-rule": advice.rule },
    h("div", { class: "title" }, h("h3", {}, name(advice.about)), h("span", { class: "hint" }, advice.rule)),
    h(
      "dl",
      { class: "reasons" },
      row("Seen", visible(advice.seen)),
      row("Costs", visible(advice.costs)),
      advice.fixes.map((/** @type {any} */ fix) => row(fix.system, h("pre", {}, lines(fix.text)))),
      row("Undo", visible(advice.undo)),
    ),
  );
}

/** @param {string} text */
const lines = (text) => text.split("\n").map(visible).join("\n");

/**
 * @param {string} term
 * @param {Node | string} what
 */
const row = (term, what) => h("div", {}, h("dt", {}, term), h("dd", {}, what));
