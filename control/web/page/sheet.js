// A worksheet: graphs under one axis of time. It is kept by the appliance, or nowhere but in its address.
//
//   lead: GET …/data?start=now&seconds=1, which waits ──▶ axis.tick ──▶ each graph asks for what it lacks

import { button, fill, h, link, name, visible } from "./dom.js";
import { get, may, path, post, put, remove } from "./api.js";
import { Axis } from "./axis.js";
import { Changes } from "./changes.js";
import { chooseStatistic } from "./choose.js";
import { form, say } from "./dialog.js";
import { lawLines } from "./law.js";
import { csvCell, download } from "./maintenance.js";
import { Panel } from "./panel.js";
import { rest } from "./poll.js";
import { shortcut, timeBar } from "./timebar.js";

const API = "/api/analytics/v1";

/**
 * Its place in the page while the appliance does not keep it.
 * @param {string[]} all
 */
export const sheetOf = (all) => `analytics/new/${all.map(encodeURIComponent).join("/")}`;

/**
 * @param {HTMLElement} main
 * @param {any[]} statistics
 * @param {any} sheet
 * @param {AbortSignal} signal
 */
export async function showSheet(main, statistics, sheet, signal) {
  const axis = new Axis();
  if (sheet.graphs[0]?.seconds) axis.span = sheet.graphs[0].seconds;
  const graphs = h("div", { class: "graphs" });
  const panels = () => /** @type {Panel[]} */ (Array.from(graphs.children).filter((c) => c instanceof Panel));
  const laws = h("div", { class: "laws", role: "status" });
  const keep = () => {
    if (sheet.uuid) return;
    history.replaceState(null, "", `#${sheetOf(panels().map((p) => p.dataset.name))}`);
  };
  const changes = new Changes();
  const context = {
    axis,
    changes,
    signal,
    add: async (/** @type {string} */ statistic, /** @type {string} */ beside) => {
      const before = panels().find((p) => p.dataset.name === beside)?.nextSibling ?? null;
      await add(statistic, [], before);
    },
    drop: (/** @type {Panel} */ panel) => {
      panel.remove();
      keep();
    },
    about: (/** @type {string} */ base) => statistics.find((s) => s.name === base),
    changed: () => {},
  };
  /**
   * @param {string} statistic
   * @param {string[]} lit
   * @param {Node | null} before
   */
  const add = async (statistic, lit, before = null) => {
    try {
      const { dataset } = await post(`${API}/datasets`, { statistic });
      if (signal.aborted) return;
      if (panels().length === 0 && dataset.last) axis.newest = Math.max(dataset.last, dataset.since ?? 0);
      const panel = /** @type {Panel} */ (document.createElement("cenote-graph"));
      graphs.insertBefore(panel.setup(context, dataset, lit), before);
      keep();
    } catch (error) {
      if (!signal.aborted) say(`${visible(statistic)}: ${/** @type {Error} */ (error).message}`);
    }
  };
  graphs.addEventListener("export", (event) => exportCsv(/** @type {any} */ (event.target), axis));
  fill(
    main,
    h("p", { class: "crumbs" }, link("Analytics", "analytics"), " /"),
    h(
      "div",
      { class: "title" },
      h("h1", {}, sheet.name ? name(sheet.name) : "Unsaved worksheet"),
      h(
        "div",
        { class: "buttons" },
        button(
          "Add a statistic\u2026",
          async () => {
            const chosen = await chooseStatistic(statistics);
            if (chosen) await add(chosen, []);
          },
          { id: "add-statistic" },
        ),
        may("analytics.allow_changeWorksheets")
          ? button("Save\u2026", () => save(sheet, panels(), axis), { id: "save-sheet" })
          : null,
        wideButton(graphs),
      ),
    ),
    timeBar(axis, signal),
    laws,
    graphs,
  );
  for (const graph of sheet.graphs) await add(graph.name, graph.drilldowns ?? []);
  const learn = () => fill(laws, ...lawLines(panels(), axis));
  axis.addEventListener("tick", learn, { signal });
  axis.addEventListener("change", learn, { signal });
  document.addEventListener("keydown", (event) => shortcut(event, axis), { signal });
  await Promise.all([lead(axis, panels, signal), changes.follow(signal)]);
}

/** @param {HTMLElement} graphs */
function wideButton(graphs) {
  graphs.classList.toggle("two", localStorage.getItem("graphs") !== "one");
  const label = () => (graphs.classList.contains("two") ? "One column" : "Two columns");
  const own = button(label(), () => {
    localStorage.setItem("graphs", graphs.classList.toggle("two") ? "two" : "one");
    fill(own, label());
  });
  return own;
}

/**
 * Waits for the next second with one graph's question, for all: a browser has few connections.
 * @param {Axis} axis
 * @param {() => Panel[]} panels
 * @param {AbortSignal} signal
 */
async function lead(axis, panels, signal) {
  while (!signal.aborted) {
    const leader = panels().find((p) => !p.dataset?.suspended);
    if (!leader || document.hidden) {
      await rest(1000, signal);
      continue;
    }
    try {
      const where = path`/api/analytics/v1/datasets/${leader.dataset.name}/data`;
      const { data } = await get(`${where}?start=now&seconds=1`, signal);
      const last = data[data.length - 1];
      if (last) axis.tick(last.sample);
      else await rest(1000, signal);
    } catch (error) {
      if (signal.aborted) return;
      await rest(2000, signal);
    }
  }
}

/**
 * @param {any} sheet
 * @param {Panel[]} panels
 * @param {Axis} axis
 */
async function save(sheet, panels, axis) {
  const graphs = panels.map((p) => ({ name: p.dataset.name, drilldowns: [...(p.lit ?? [])], seconds: axis.span }));
  let made = "";
  const done = await form(
    sheet.uuid ? `Save ${visible(sheet.name)}` : "Save as a worksheet",
    [{ key: "name", label: "Name", value: sheet.name }],
    "Save",
    async ({ name: wanted }) => {
      if (sheet.uuid) {
        const where = path`/api/analytics/v1/worksheets/${sheet.uuid}`;
        if (wanted !== sheet.name) await put(where, { name: wanted });
        for (const graph of sheet.graphs) await remove(`${where}/datasets/${encodeURIComponent(graph.name)}`);
        for (const graph of graphs) await post(`${where}/datasets`, graph);
        made = sheet.uuid;
        return;
      }
      const { worksheet: own } = await post(`${API}/worksheets`, { name: wanted });
      made = own.uuid;
      for (const graph of graphs) await post(path`/api/analytics/v1/worksheets/${made}/datasets`, graph);
    },
  );
  if (!done) return;
  say("Saved; its address can be given to others.");
  const to = `#analytics/sheet/${encodeURIComponent(made)}`;
  if (location.hash === to) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = to;
}

/**
 * @param {Panel} panel
 * @param {Axis} axis
 */
function exportCsv(panel, axis) {
  const points = panel.series?.within(axis.view()) ?? [];
  const lines = [["time", "value", "key", "part"].join(",")];
  for (const point of points) {
    const at = new Date(point.at * 1000).toISOString();
    if (point.parts.length === 0) lines.push([at, point.value, "", ""].map(csvCell).join(","));
    for (const part of point.parts) lines.push([at, point.value, part.key, part.value].map(csvCell).join(","));
  }
  download(`${panel.dataset.name.replace(/[^a-z0-9.]+/gi, "_")}.csv`, lines.join("\r\n"), "text/csv");
}
