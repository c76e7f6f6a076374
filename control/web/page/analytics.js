// Analytics: graphs of statistics under one axis of time, kept as worksheets and shared by their address.
//
//   #analytics                        worksheets, and what a beginner would open
//   #analytics/new/STATISTIC/…        a sheet that is nowhere but in its address
//   #analytics/sheet/UUID             one that the appliance keeps
//
//   leader: GET …/data?start=last+1&seconds=1, which waits ──▶ axis.tick ──▶ each graph asks for what it lacks

import { button, fill, h, link, name, table, visible } from "./dom.js";
import { Fault, get, may, path, post, put, remove } from "./api.js";
import { Axis, SPANS } from "./axis.js";
import { confirm, form, say } from "./dialog.js";
import { count, moment, size, time } from "./format.js";
import { csvCell, download } from "./maintenance.js";
import { Panel } from "./panel.js";
import { rest } from "./poll.js";
import { parse } from "./query.js";
import { chooseStatistic } from "./choose.js";

const API = "/api/analytics/v1";

/** What to open first, by the question that it answers. */
const STARTS = [
  ["Are transfers split on their way to the disks?", ["iscsi.ops[size]", "io.ops[size]", "iscsi.bytes", "io.bytes"]],
  ["How fast is iSCSI answered?", ["iscsi.ops", "iscsi.bytes", "iscsi.ops[latency]"]],
  ["How fast is NBD answered?", ["nbd.ops", "nbd.bytes", "nbd.ops[latency]"]],
  ["How busy is each disk?", ["io.ops[disk]", "io.bytes[disk]", "io.ops[latency]"]],
  ["Does the cache help?", ["arc.accesses[hit/miss]", "arc.size"]],
];

/**
 * @param {HTMLElement} main
 * @param {string[]} parts
 * @param {AbortSignal} signal
 */
export async function showAnalytics(main, parts, signal) {
  let statistics;
  try {
    statistics = (await get(`${API}/statistics`, signal)).statistics;
  } catch (error) {
    if (!(error instanceof Fault) || error.status !== 404) throw error;
    fill(main, h("h1", {}, "Analytics"), h("p", { class: "empty" }, "This appliance keeps no statistics."));
    return;
  }
  if (parts[0] === "sheet" && parts[1]) return showSheet(main, statistics, await worksheet(parts[1], signal), signal);
  if (parts[0] === "new") return showSheet(main, statistics, { name: "", uuid: "", graphs: parts.slice(1).filter(Boolean).map((n) => ({ name: n, drilldowns: [], seconds: 300 })) }, signal);
  const [sheets, datasets] = await Promise.all([get(`${API}/worksheets`, signal), get(`${API}/datasets`, signal)]);
  const again = () => showAnalytics(main, parts, signal);
  fill(
    main,
    h("div", { class: "title" }, h("h1", {}, "Analytics"),
      h("div", { class: "buttons" }, button("Open a statistic\u2026", async () => {
        const chosen = await chooseStatistic(statistics);
        if (chosen) location.hash = sheetOf([chosen]);
      }, { class: "primary", id: "open-statistic" }))),
    h("section", { "aria-labelledby": "a-start" }, h("h2", { id: "a-start" }, "Begin with a question"),
      h("ul", { class: "starts" }, STARTS.map(([question, all]) => startOf(/** @type {string} */ (question), /** @type {string[]} */ (all), statistics)))),
    h("section", { "aria-labelledby": "a-sheets" }, h("h2", { id: "a-sheets" }, "Worksheets"),
      table("Worksheets", ["Name", "Owner", "Changed", "Graphs>", ""], sheets.worksheets.map((/** @type {any} */ w) => [
        link(w.name, `analytics/sheet/${encodeURIComponent(w.uuid)}`), name(w.owner), w.mtime ? moment(w.mtime) : "", (w.graphs ?? []).length,
        may("analytics.allow_changeWorksheets") ? h("span", { class: "buttons" }, button("Destroy\u2026", () => destroySheet(w, again), { class: "danger", "aria-label": `Destroy ${w.name}` })) : null,
      ]), "None yet: open statistics, then save them as one.")),
    h("section", { "aria-labelledby": "a-sets" }, h("h2", { id: "a-sets" }, "Open statistics"),
      table("Datasets", ["Statistic", "Cost", "Memory>", "Disk>", "Since", "State", ""], datasets.datasets.map((/** @type {any} */ d) => datasetRow(d, again)), "None is open, so that none costs anything.")),
  );
}

/** @param {string[]} all */
const sheetOf = (all) => `analytics/new/${all.map(encodeURIComponent).join("/")}`;

/**
 * @param {string} question
 * @param {string[]} all
 * @param {any[]} statistics
 */
function startOf(question, all, statistics) {
  const known = all.filter((s) => statistics.some((k) => k.name === parse(s).base));
  return known.length ? h("li", {}, h("a", { href: `#${sheetOf(known)}` }, question), h("span", { class: "hint" }, known.join(", "))) : null;
}

/**
 * @param {any} d
 * @param {() => Promise<void>} again
 */
function datasetRow(d, again) {
  const act = (/** @type {Promise<any>} */ done) => done.then(again, (error) => say(error.message));
  const where = path`/api/analytics/v1/datasets/${d.name}`;
  const able = may("analytics.allow_changeDatasets");
  const drop = async () => {
    if (await confirm("Destroy this dataset?", `${visible(d.name)}: all its samples are gone for good.`, "Destroy", () => remove(where))) await again();
  };
  return [
    link(d.name, sheetOf([d.name])), d.overhead, size(d.incore), size(d.size), d.since ? moment(d.since) : "",
    d.problem ? visible(d.problem) : `${d.suspended ? "suspended" : "running"}${d.saved ? ", kept" : ""}`,
    able ? h("span", { class: "buttons" },
      button(d.suspended ? "Resume" : "Suspend", () => act(put(`${where}/${d.suspended ? "resume" : "suspend"}`)), { "aria-label": `${d.suspended ? "Resume" : "Suspend"} ${d.name}` }),
      d.saved ? null : button("Keep", () => act(put(`${where}/save`)), { "aria-label": `Keep ${d.name} on disk` }),
      button("Destroy\u2026", drop, { class: "danger", "aria-label": `Destroy ${d.name}` })) : null,
  ];
}

/**
 * @param {any} sheet
 * @param {() => Promise<void>} again
 */
async function destroySheet(sheet, again) {
  const done = await confirm(`Destroy worksheet ${visible(sheet.name)}?`, "Its statistics and their samples stay.", "Destroy", () => remove(path`/api/analytics/v1/worksheets/${sheet.uuid}`));
  if (done) await again();
}

/**
 * @param {string} uuid
 * @param {AbortSignal} signal
 */
async function worksheet(uuid, signal) {
  const { worksheet: sheet } = await get(path`/api/analytics/v1/worksheets/${uuid}`, signal);
  return { ...sheet, graphs: sheet.graphs ?? (await get(path`/api/analytics/v1/worksheets/${uuid}/datasets`, signal)).datasets };
}

/**
 * @param {HTMLElement} main
 * @param {any[]} statistics
 * @param {any} sheet
 * @param {AbortSignal} signal
 */
async function showSheet(main, statistics, sheet, signal) {
  const axis = new Axis();
  if (sheet.graphs[0]?.seconds) axis.span = sheet.graphs[0].seconds;
  const graphs = h("div", { class: "graphs" });
  const panels = () => /** @type {Panel[]} */ (Array.from(graphs.children).filter((c) => c instanceof Panel));
  const laws = h("div", { class: "laws", role: "status" });
  const keep = () => {
    if (sheet.uuid) return;
    history.replaceState(null, "", `#${sheetOf(panels().map((p) => p.dataset.name))}`);
  };
  const context = {
    axis,
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
  fill(main,
    h("p", { class: "crumbs" }, link("Analytics", "analytics"), " /"),
    h("div", { class: "title" }, h("h1", {}, sheet.name ? name(sheet.name) : "Unsaved worksheet"),
      h("div", { class: "buttons" },
        button("Add a statistic\u2026", async () => {
          const chosen = await chooseStatistic(statistics);
          if (chosen) await add(chosen, []);
        }, { id: "add-statistic" }),
        may("analytics.allow_changeWorksheets") ? button("Save\u2026", () => save(sheet, panels(), axis), { id: "save-sheet" }) : null,
        wideButton(graphs))),
    bar(axis, signal), laws, graphs);
  for (const graph of sheet.graphs) await add(graph.name, graph.drilldowns ?? []);
  const learn = () => fill(laws, ...lawLines(panels(), axis));
  axis.addEventListener("tick", learn, { signal });
  axis.addEventListener("change", learn, { signal });
  document.addEventListener("keydown", (event) => shortcut(event, axis), { signal });
  await lead(axis, panels, signal);
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
 * @param {Axis} axis
 * @param {AbortSignal} signal
 */
function bar(axis, signal) {
  const live = button("", () => (axis.isLive ? axis.pause() : axis.now()), { id: "pause" });
  const spans = h("select", { "aria-label": "Time shown", onchange: () => spans.value && axis.setSpan(Number(spans.value)) });
  const about = h("span", { class: "hint" });
  const show = () => {
    fill(live, axis.isLive ? "Pause" : "Back to now");
    const known = SPANS.some(([s]) => s === axis.span);
    fill(spans, ...SPANS.map(([s, text]) => h("option", { value: String(s), selected: s === axis.span }, text)), known ? null : h("option", { value: "", selected: true }, `${axis.span} s`));
    const { from, to } = axis.view();
    fill(about, axis.isLive ? "live" : `${moment(from)} to ${moment(to)}`);
  };
  axis.addEventListener("change", show, { signal });
  show();
  return h("div", { class: "toolbar", role: "toolbar", "aria-label": "Time" },
    live,
    button("\u2190", () => axis.pan(-axis.span / 2), { "aria-label": "Earlier", title: "Earlier (,)" }),
    button("\u2192", () => axis.pan(axis.span / 2), { "aria-label": "Later", title: "Later (.)" }),
    button("+", () => axis.zoom(0.5), { "aria-label": "Closer", title: "Closer (+)" }),
    button("\u2212", () => axis.zoom(2), { "aria-label": "Farther", title: "Farther (-)" }),
    spans, about);
}

/**
 * @param {KeyboardEvent} event
 * @param {Axis} axis
 */
function shortcut(event, axis) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.altKey || event.metaKey || target.closest("input, select, textarea, dialog")) return;
  const act = {
    p: () => (axis.isLive ? axis.pause() : axis.now()), n: () => axis.now(),
    ",": () => axis.pan(-axis.span / 2), ".": () => axis.pan(axis.span / 2), "+": () => axis.zoom(0.5), "=": () => axis.zoom(0.5), "-": () => axis.zoom(2),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

/**
 * Operations, bandwidth and response time stand together wherever they are open, with what Little's law makes of them.
 * @param {Panel[]} panels
 * @param {Axis} axis
 */
function lawLines(panels, axis) {
  const view = axis.view();
  const average = (/** @type {string} */ statistic) => {
    const points = panels.find((p) => p.dataset.name === statistic)?.series?.within(view) ?? [];
    return points.length ? points.reduce((sum, p) => sum + p.value, 0) / points.length : null;
  };
  const protocols = [...new Set(panels.map((p) => p.dataset.name).filter((n) => /^\w+\.ops\[latency\]$/.test(n)).map((n) => n.split(".")[0]))];
  return protocols.map((base) => {
    const points = panels.find((p) => p.dataset.name === `${base}.ops[latency]`)?.series?.within(view) ?? [];
    let [sum, n] = [0, 0];
    for (const point of points) for (const part of point.parts) if (part.from !== undefined) {
      sum += part.value * ((part.from + (part.to ?? part.from)) / 2);
      n += part.value;
    }
    if (n === 0) return null;
    const ops = n / points.length;
    const wait = sum / n;
    const bytes = average(`${base}.bytes`);
    const transfer = bytes === null ? "" : `, ${size(bytes)}/s in transfers of ${size(bytes / ops)}`;
    return h("p", { class: "law" }, h("strong", {}, base), `  ${count(ops)} operations/s${transfer}, ${time(wait)} each: ${((ops * wait) / 1e9).toFixed(2)} outstanding by Little\u2019s law`);
  });
}

/**
 * @param {any} sheet
 * @param {Panel[]} panels
 * @param {Axis} axis
 */
async function save(sheet, panels, axis) {
  const graphs = panels.map((p) => ({ name: p.dataset.name, drilldowns: [...(p.lit ?? [])], seconds: axis.span }));
  let made = "";
  const done = await form(sheet.uuid ? `Save ${visible(sheet.name)}` : "Save as a worksheet", [{ key: "name", label: "Name", value: sheet.name }], "Save", async ({ name: wanted }) => {
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
  });
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
