// Which statistic to open: by its group and name, then what it is broken down by, with what it costs while it is open.

import { button, fill, h, visible } from "./dom.js";

/**
 * @param {any[]} statistics as the API tells them
 * @returns {Promise<string | null>}
 */
export function chooseStatistic(statistics) {
  return new Promise((resolve) => {
    const end = (/** @type {string | null} */ chosen) => {
      dialog.close();
      dialog.remove();
      resolve(chosen);
    };
    const search = h("input", {
      type: "search",
      placeholder: "Search, or write one: iscsi.ops[op=read][size]",
      "aria-label": "Search statistics",
      oninput: () => list(),
      spellcheck: "false",
    });
    const results = h("div", { class: "statistics" });
    const list = () => {
      const text = search.value.trim().toLowerCase();
      const found = statistics.filter((s) => `${s.name} ${s.title} ${s.grouping}`.toLowerCase().includes(text));
      const groups = [...new Set(found.map((s) => s.grouping))];
      const written = /^[a-z]+\.[a-z]+/.test(text)
        ? button(`Open ${visible(search.value.trim())}`, () => end(search.value.trim()), { class: "primary" })
        : null;
      fill(
        results,
        written,
        groups.map((g) => h("section", {}, h("h3", {}, g), found.filter((s) => s.grouping === g).map(one))),
      );
    };
    const one = (/** @type {any} */ s) => {
      const open = (/** @type {string} */ by) => () => end(by ? `${s.name}[${by}]` : s.name);
      return h(
        "div",
        { class: "statistic" },
        h(
          "p",
          {},
          h("strong", {}, s.title),
          " ",
          h("code", {}, s.name),
          h("span", { class: "hint" }, ` ${s.unit}, costs ${s.cost}`),
        ),
        h("p", { class: "hint" }, s.explanation),
        h(
          "p",
          { class: "buttons" },
          button("As it is", open(""), { "aria-label": `Open ${s.name}` }),
          s.breakdowns.map((/** @type {any} */ b) =>
            button(`by ${b.title}`, open(b.name), { "aria-label": `Open ${s.name} by ${b.title}` }),
          ),
        ),
      );
    };
    const dialog = h(
      "dialog",
      {
        class: "wide",
        "aria-label": "Open a statistic",
        oncancel: (/** @type {Event} */ e) => {
          e.preventDefault();
          end(null);
        },
      },
      h(
        "form",
        { onsubmit: (/** @type {Event} */ e) => e.preventDefault() },
        h(
          "div",
          { class: "title" },
          h("h2", {}, "Open a statistic"),
          button("Cancel", () => end(null)),
        ),
        search,
        results,
      ),
    );
    list();
    document.body.append(dialog);
    dialog.showModal();
    search.focus();
  });
}
