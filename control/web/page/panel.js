// One graph: its statistic, the list of its breakdown's values at the side, and the picture. A custom element, so that it
// looks after itself: it draws when it is told of time, and stops when it is taken out of the page.
//
//   axis "tick", "change" ──▶ series.need(view) ──▶ draw, once a frame
//   list: a click highlights, the menu drills down      picture: hover tells, drag moves in time, wheel with Ctrl zooms
//   as a hierarchy: a click on a slice, or in the list, goes into what is below it

import { button, fill, h, name, visible } from "./dom.js";
import { Fault, post } from "./api.js";
import { drawAreas, nearest, ranked } from "./areas.js";
import { ticks } from "./axis.js";
import { labelled } from "./buckets.js";
import { drawMarks, pointed, sentence } from "./changes.js";
import { count, inUnit, moment } from "./format.js";
import { drawHeat, rows } from "./heat.js";
import { PATHS, drawPie, level } from "./hierarchy.js";
import { showMenu } from "./menu.js";
import { colour, theme } from "./palette.js";
import { only, parse, write } from "./query.js";
import { Series } from "./series.js";

/** So many values are told apart by colour; the list has more. */
const TOLD = 9;
const LISTED = 60;
const NAMED = 4096;

/**
 * @typedef {object} Context what a graph needs of the page that it is on
 * @property {import("./axis.js").Axis} axis
 * @property {import("./changes.js").Changes} changes
 * @property {AbortSignal} signal
 * @property {(statistic: string, beside: string) => void} add opens another graph below this one
 * @property {(panel: Panel) => void} drop
 * @property {(base: string) => any} about the statistic, with its breakdowns, as the API tells it
 * @property {() => void} changed what a worksheet keeps of it
 */

export class Panel extends HTMLElement {
  /** @type {any} as the API tells it */
  dataset = null;
  /** @type {Set<string>} the values that are highlighted */
  lit = new Set();
  /** @type {Map<string, number>} the colour of a value stays while the graph is there */
  colours = new Map();
  /** The share of everything that is dropped as outliers. */
  dropped = 0;
  frame = 0;
  /** @type {string[] | null} where it is in the hierarchy of its values; none: it is drawn over time */
  place = null;

  /**
   * @param {Context} context
   * @param {any} dataset as the API tells it
   * @param {string[]} [lit] the values that are highlighted
   */
  setup(context, dataset, lit = []) {
    this.context = context;
    this.dataset = dataset;
    this.query = parse(dataset.name);
    this.series = new Series(dataset.name);
    if (dataset.suspended) this.series.limit = dataset.last;
    this.lit = new Set(lit);
    this.isHeat = dataset.range === true && this.query.breakdown !== null;
    return this;
  }

  connectedCallback() {
    const { context, dataset } = this;
    if (!context || this.canvas) return;
    const { axis, changes, signal } = context;
    this.canvas = h("canvas", { tabIndex: 0, role: "img", "aria-label": dataset.name });
    this.list = h("ul", { class: "values", "aria-label": `Values of ${dataset.name}` });
    this.tip = h("div", { class: "tip", hidden: true });
    this.figures = h("p", { class: "figures" });
    this.marked = h("p", { class: "marked", role: "status" });
    this.problem = h("p", { class: "problem", role: "alert" });
    const about = context.about(this.query?.base ?? "");
    const slider = h("input", {
      type: "range",
      min: "0",
      max: "60",
      value: "0",
      "aria-label": "Outliers that are dropped, in per mille",
      oninput: () => {
        this.dropped = Number(slider.value) ** 2 / 1000 / 3.6;
        fill(share, `${(this.dropped * 100).toFixed(1)} %`);
        this.soon();
      },
    });
    const share = h("output", {}, "0.0 %");
    this.hidden_ = h("span", { class: "hint" });
    const menu = button("\u22ef", () => this.openMenu(null, menu), {
      class: "plain",
      "aria-label": "Break down or export",
      title: "Break down or export",
    });
    fill(
      this,
      h(
        "div",
        { class: "panel-head" },
        h(
          "h3",
          { title: about?.explanation ?? dataset.explanation ?? "" },
          visible(describe(this.query, about)),
          h("code", {}, name(dataset.name)),
        ),
        h(
          "span",
          { class: "buttons" },
          menu,
          button("\u00d7", () => context.drop(this), {
            class: "plain",
            "aria-label": `Close ${dataset.name}`,
            title: "Close",
          }),
        ),
      ),
      h(
        "div",
        { class: "panel-body" },
        this.query?.breakdown ? this.list : null,
        h("div", { class: "picture" }, this.canvas, this.tip, this.figures, this.marked),
      ),
      this.isHeat ? h("label", { class: "outliers" }, "Drop outliers ", slider, " ", share, " ", this.hidden_) : null,
      this.problem,
    );
    const more = { signal };
    axis.addEventListener("tick", () => axis.isLive && this.refresh(), more);
    axis.addEventListener("change", () => this.refresh(), more);
    axis.addEventListener("point", () => this.soon(), more);
    changes.addEventListener("change", () => this.soon(), more);
    window.addEventListener("theme", () => this.soon(), more);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.soon(), more);
    const watch = new ResizeObserver(() => this.soon());
    watch.observe(this.canvas);
    signal.addEventListener("abort", () => watch.disconnect());
    this.listen(this.canvas);
    this.refresh();
  }

  /** @param {HTMLCanvasElement} canvas */
  listen(canvas) {
    const axis = /** @type {Context} */ (this.context).axis;
    const second = (/** @type {number} */ x) => {
      const { from, to } = axis.view();
      const box = this.box;
      return box ? from + Math.floor(((x - box.x) / box.width) * (to - from + 1)) : from;
    };
    let grabbed = /** @type {number | null} */ (null);
    let moved = 0;
    canvas.addEventListener("pointermove", (event) => {
      if (grabbed !== null) {
        const { from, to } = axis.view();
        const by = ((grabbed - event.offsetX) / (this.box?.width ?? 1)) * (to - from + 1);
        if (Math.abs(by) >= 1) {
          axis.pan(by);
          moved += Math.abs(by);
          grabbed = event.offsetX;
        }
        return;
      }
      this.pointer = { x: event.offsetX, y: event.offsetY };
      axis.point(second(event.offsetX));
      this.soon();
    });
    canvas.addEventListener("pointerleave", () => {
      this.pointer = undefined;
      axis.point(null);
      this.soon();
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.place) return;
      grabbed = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => {
      grabbed = null;
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        if (event.shiftKey) axis.pan(Math.sign(event.deltaY || event.deltaX) * axis.span * 0.1);
        else axis.zoom(event.deltaY > 0 ? 1.25 : 0.8, second(event.offsetX));
      },
      { passive: false },
    );
    canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      const row = this.heatRow?.(event.offsetY);
      const slice = this.sliceAt?.(event.offsetX, event.offsetY);
      this.openMenu(slice?.isLeaf ? slice : row?.key ? row : null, canvas, event);
    });
    canvas.addEventListener("click", (event) => {
      const slice = this.sliceAt?.(event.offsetX, event.offsetY);
      if (slice) this.choose(slice);
    });
    canvas.addEventListener("keydown", (event) => {
      const { from, to } = axis.view();
      const step = Math.max(1, Math.round((to - from + 1) / 100));
      const at = axis.pointed ?? to;
      if (event.key === "ArrowLeft") axis.point(Math.max(from, at - step));
      else if (event.key === "ArrowRight") axis.point(Math.min(to, at + step));
      else if (event.key === "ContextMenu" || event.key === "Enter") this.openMenu(null, canvas);
      else return;
      event.preventDefault();
    });
  }

  /** Fetches what is missing, then draws. */
  async refresh() {
    const { context, series } = this;
    if (!context || !series || document.hidden) return this.soon();
    try {
      await series.need(context.axis.view(), context.signal);
      if (this.problem) fill(this.problem);
    } catch (error) {
      if (context.signal.aborted) return;
      // What nobody asked for a while was closed, as while this page was not looked at.
      const isClosed = error instanceof Fault && error.status === 404;
      if (isClosed) await post("/api/analytics/v1/datasets", { statistic: this.dataset.name }).catch(() => {});
      else if (this.problem) fill(this.problem, /** @type {Error} */ (error).message);
    }
    this.soon();
  }

  soon() {
    if (this.frame || !this.isConnected) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const { canvas, context, series, dataset } = this;
    if (!canvas || !context || !series) return;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (width < 40) return;
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const view = context.axis.view();
    const points = series.within(view);
    const box = { x: 62, y: 8, width: width - 66, height: height - 30 };
    this.box = box;
    const colours = theme();
    pen.font = "11px system-ui, sans-serif";
    const ranks = ranked(points);
    this.heatRow = undefined;
    this.sliceAt = undefined;
    if (this.place) {
      this.drawHierarchy(pen, { x: 8, y: 8, width: width - 16, height: height - 16 }, ranks, points.length);
      return;
    }
    let top = 1;
    let at = nearest(points, view, box);
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    if (this.isHeat) {
      const { rows: lines, hidden, grid } = rows(points, this.dropped, this.query?.breakdown ?? "");
      if (this.hidden_) fill(this.hidden_, hidden > 0 ? `${(hidden * 100).toFixed(2)} % lie above` : "");
      const { rowAt } = drawHeat(pen, box, view, points, lines, grid, this.lit);
      this.heatRow = rowAt;
      this.grid = grid;
      pen.fillStyle = colours.soft;
      const high = box.height / lines.length;
      for (const i of labelled(grid, lines, box.height)) {
        const y = box.y + box.height - (i + 0.5) * high;
        pen.fillText(this.bound(lines[i].from), box.x - 8, y);
        pen.fillRect(box.x - 4, Math.round(y), 4, 1);
      }
    } else {
      ranks.forEach(({ key }) => this.colourOf(key));
      const told = ranks.slice(0, TOLD).map(({ key }) => ({ key, index: this.colourOf(key) }));
      // What is highlighted stands on the ground, where its height is read.
      told.sort((a, b) => Number(this.lit.has(b.key)) - Number(this.lit.has(a.key)));
      const binary = /byte/i.test(dataset.unit);
      const drawn = drawAreas(pen, box, view, points, told, this.lit, binary);
      top = drawn.top;
      at = drawn.at;
      pen.fillStyle = colours.soft;
      pen.strokeStyle = colours.line;
      pen.lineWidth = 1;
      for (const part of [0, 0.5, 1]) {
        const y = Math.round(box.y + box.height * (1 - part)) + 0.5;
        pen.globalAlpha = 0.7;
        pen.beginPath();
        pen.moveTo(box.x, y);
        pen.lineTo(box.x + box.width, y);
        pen.stroke();
        pen.globalAlpha = 1;
        pen.fillText(part === 0 ? "0" : inUnit(top * part, dataset.unit), box.x - 6, Math.max(8, y));
      }
    }
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    // Around the picture, so that it hides no row at its edge.
    pen.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    pen.fillStyle = colours.soft;
    pen.textAlign = "center";
    for (const tick of ticks(view, box.width)) {
      const x = box.x + ((tick.at - view.from) / (view.to - view.from + 1)) * box.width;
      if (x < box.x + 16 || x > box.x + box.width - 16) continue;
      pen.fillRect(Math.round(x), box.y + box.height, 1, 4);
      pen.fillText(tick.text, x, box.y + box.height + 14);
    }
    const marks = context.changes.within(view);
    drawMarks(pen, box, view, marks, dataset.name, colours);
    this.drawPointer(pen, box, view, at, colours);
    this.tellMarks(marks, view, box);
    this.drawList(ranks, points);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {import("./hierarchy.js").Box} box
   * @param {ReturnType<typeof ranked>} ranks
   * @param {number} samples
   */
  drawHierarchy(pen, box, ranks, samples) {
    const { dataset, figures, list, place, pointer, tip } = this;
    if (!figures || !list || !place || !tip) return;
    const branches = level(ranks, place);
    const key = (/** @type {import("./hierarchy.js").Branch} */ branch) => [...place, branch.name].join("/");
    const per = (/** @type {number} */ total) => inUnit(samples > 0 ? total / samples : 0, dataset.unit);
    const isLit = (/** @type {import("./hierarchy.js").Branch} */ branch) => branch.isLeaf && this.lit.has(branch.key);
    this.sliceAt = drawPie(pen, box, branches, (branch) => this.colourOf(key(branch)), isLit);
    const whole = branches.reduce((sum, branch) => sum + branch.total, 0);
    fill(figures, samples > 0 ? `${per(whole)} on average in this time` : "No samples in this time.");
    const share = (/** @type {number} */ total) => `${((whole > 0 ? total / whole : 0) * 100).toFixed(1)} %`;
    const pointed = pointer && this.sliceAt(pointer.x, pointer.y);
    tip.hidden = !pointed;
    if (pointed) {
      fill(tip, visible(pointed.name), `: ${per(pointed.total)}, ${share(pointed.total)}`);
      tip.style.left = `${Math.min(pointer.x + 12, box.x + box.width - 180)}px`;
      tip.style.top = `${pointer.y + 14}px`;
    }
    const shown = branches.slice(0, LISTED);
    const wanted = [place.join("/"), ...shown.map(key)].join("\u0000");
    const isHeld = list.matches(":hover, :focus-within") && list.dataset.place === place.join("/");
    if (!isHeld && list.dataset.wanted !== wanted) {
      const up = place.map((name, i) => ({ name, to: place.slice(0, i + 1) }));
      const way = [{ name: "all", to: [] }, ...up].map(({ name, to }, i) =>
        button(visible(name), () => this.go(to), {
          class: "plain",
          "aria-current": i === place.length ? "location" : undefined,
        }),
      );
      fill(
        list,
        h("li", { class: "way" }, way),
        shown.map((branch) => this.branch(branch, key(branch))),
      );
      list.dataset.place = place.join("/");
      list.dataset.wanted = wanted;
    } else if (isHeld) {
      appendNew(list, shown, key, (branch) => this.branch(branch, key(branch)));
    }
    const totals = new Map(shown.map((branch) => [key(branch), branch]));
    for (const item of /** @type {HTMLElement[]} */ (Array.from(list.children))) {
      const branch = totals.get(item.dataset.key ?? "");
      const value = item.querySelector(".value");
      if (value) fill(value, per(branch?.total ?? 0));
      const swatch = /** @type {HTMLElement | null} */ (item.querySelector(".swatch"));
      const isTold = branch && branches.indexOf(branch) < TOLD;
      if (swatch) swatch.style.background = isTold ? colour(this.colourOf(key(branch))) : "transparent";
      if (branch?.isLeaf) item.querySelector("button")?.setAttribute("aria-pressed", String(isLit(branch)));
    }
  }

  /**
   * @param {import("./hierarchy.js").Branch} branch
   * @param {string} key
   */
  branch(branch, key) {
    const choose = button("", () => this.choose(branch), {
      class: "plain",
      oncontextmenu: (/** @type {MouseEvent} */ event) => {
        event.preventDefault();
        this.openMenu(branch.isLeaf ? branch : null, choose, event);
      },
    });
    const text = branch.isLeaf ? branch.name : `${branch.name} \u25b8`;
    fill(choose, h("span", { class: "swatch", "aria-hidden": "true" }), name(text), h("span", { class: "value" }));
    return h("li", { "data-key": key }, choose);
  }

  /** @param {import("./hierarchy.js").Branch} branch */
  choose(branch) {
    if (!branch.isLeaf) return this.go([...(this.place ?? []), branch.name]);
    if (this.lit.has(branch.key)) this.lit.delete(branch.key);
    else this.lit.add(branch.key);
    this.context?.changed();
    this.soon();
  }

  /** @param {string[] | null} place */
  go(place) {
    this.place = place;
    if (this.list) {
      fill(this.list);
      delete this.list.dataset.place;
      delete this.list.dataset.wanted;
    }
    if (this.marked) fill(this.marked);
    this.draw();
    /** @type {HTMLElement | null | undefined} */ (this.list?.querySelector("li:not(.way) button"))?.focus();
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {{x: number, y: number, width: number, height: number}} box
   * @param {{from: number, to: number, step: number}} view
   * @param {(x: number) => import("./series.js").Point | undefined} at
   * @param {{soft: string, text: string}} colours
   */
  drawPointer(pen, box, view, at, colours) {
    const { context, dataset, figures, tip } = this;
    if (!context || !figures || !tip) return;
    const pointed = context.axis.pointed;
    const x = pointed === null ? null : box.x + ((pointed + 0.5 - view.from) / (view.to - view.from + 1)) * box.width;
    const last = x === null || x < box.x || x > box.x + box.width ? undefined : at(x);
    if (x !== null && last) {
      pen.strokeStyle = colours.text;
      pen.globalAlpha = 0.6;
      pen.beginPath();
      pen.moveTo(Math.round(x) + 0.5, box.y);
      pen.lineTo(Math.round(x) + 0.5, box.y + box.height);
      pen.stroke();
      pen.globalAlpha = 1;
    }
    const points = this.series?.within(view) ?? [];
    const point = last ?? points[points.length - 1];
    const average = points.length ? points.reduce((sum, p) => sum + p.value, 0) / points.length : 0;
    fill(
      figures,
      point
        ? `${moment(point.at)}  ${inUnit(point.value, dataset.unit)}   average ${inUnit(average, dataset.unit)}`
        : "No samples in this time.",
    );
    const row = this.pointer && this.heatRow?.(this.pointer.y);
    if (!this.pointer || !last || !row) {
      tip.hidden = true;
      return;
    }
    const isIn = (/** @type {import("./series.js").Part} */ part) =>
      part.from !== undefined && this.grid?.at(part.from).from === row.from;
    const value = last.parts.filter(isIn).reduce((sum, part) => sum + part.value, 0);
    const share = last.value > 0 ? (value / last.value) * 100 : 0;
    fill(
      tip,
      `${this.bound(row.from)} to ${this.bound(row.to)}: ${inUnit(value, dataset.unit)}, `,
      `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} % of that moment`,
    );
    tip.hidden = false;
    tip.style.left = `${Math.min(this.pointer.x + 12, box.x + box.width - 180)}px`;
    tip.style.top = `${this.pointer.y + 14}px`;
  }

  /**
   * @param {import("./changes.js").Change[]} marks
   * @param {{from: number, to: number, step: number}} view
   * @param {{x: number, y: number, width: number, height: number}} box
   */
  tellMarks(marks, view, box) {
    const { context, marked, dataset } = this;
    if (!context || !marked) return;
    const found = pointed(marks, view, box, this.pointer?.x, context.axis.pointed);
    const text = found.map((change) => sentence(change, dataset.name)).join("\n");
    if (marked.textContent !== text) fill(marked, text);
  }

  /** @param {number} value the bound of a bucket */
  bound(value) {
    const by = this.query?.breakdown;
    if (by === "latency" || by === "time" || by === "delay") return inUnit(value, "nanoseconds");
    if (by === "utilization") return `${value} %`;
    return by === "size" || by === "offset" ? inUnit(value, "bytes") : count(value);
  }

  /** @param {string} key */
  colourOf(key) {
    // In a week more names may come than anybody tells apart.
    if (this.colours.size > NAMED) this.colours.clear();
    const own = this.colours.get(key) ?? this.colours.size;
    this.colours.set(key, own);
    return own;
  }

  /**
   * @param {ReturnType<typeof ranked>} ranks
   * @param {import("./series.js").Point[]} points
   */
  drawList(ranks, points) {
    const { list, dataset } = this;
    if (!list || !this.query?.breakdown) return;
    const shown = ranks.slice(0, LISTED);
    if (this.isHeat) shown.sort((a, b) => (b.part.from ?? 0) - (a.part.from ?? 0));
    const wanted = shown.map((r) => r.key);
    // While the pointer or the focus is on it, the order stays: nothing is clicked that has just moved there. What has come
    // since stands at the end.
    const isHeld = list.matches(":hover, :focus-within");
    const have = Array.from(list.children, (item) => /** @type {HTMLElement} */ (item).dataset.key ?? "");
    if (!isHeld && wanted.join("\u0000") !== have.join("\u0000")) {
      fill(
        list,
        shown.map((r) => this.item(r)),
      );
    } else if (isHeld) {
      const key = (/** @type {typeof shown[0]} */ rank) => rank.key;
      appendNew(list, shown, key, (rank) => this.item(rank));
    }
    const totals = new Map(shown.map((r) => [r.key, r.total]));
    const told = new Set(ranks.slice(0, TOLD).map((r) => r.key));
    for (const item of Array.from(list.children)) {
      const own = /** @type {HTMLElement} */ (item);
      const key = own.dataset.key ?? "";
      const value = own.querySelector(".value");
      const per = points.length ? (totals.get(key) ?? 0) / points.length : 0;
      if (value) fill(value, inUnit(per, dataset.unit));
      const swatch = /** @type {HTMLElement | null} */ (own.querySelector(".swatch"));
      if (swatch) swatch.style.background = this.isHeat || !told.has(key) ? "transparent" : colour(this.colourOf(key));
      own.querySelector("button")?.setAttribute("aria-pressed", String(this.lit.has(key)));
    }
  }

  /** @param {ReturnType<typeof ranked>[0]} rank */
  item({ key, part }) {
    const toggle = button(
      "",
      () => {
        if (this.lit.has(key)) this.lit.delete(key);
        else this.lit.add(key);
        this.context?.changed();
        this.soon();
      },
      {
        class: "plain",
        oncontextmenu: (/** @type {MouseEvent} */ event) => {
          event.preventDefault();
          this.openMenu(part, toggle, event);
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "m" && event.key !== "ContextMenu") return;
          event.preventDefault();
          this.openMenu(part, toggle);
        },
      },
    );
    fill(toggle, h("span", { class: "swatch", "aria-hidden": "true" }), name(key), h("span", { class: "value" }));
    return h("li", { "data-key": key }, toggle);
  }

  /**
   * @param {{key: string, from?: number} | null} part what was pointed at
   * @param {HTMLElement} from
   * @param {MouseEvent} [event]
   */
  openMenu(part, from, event) {
    const { context, query, dataset } = this;
    if (!context || !query) return;
    const about = context.about(query.base);
    const used = new Set(query.filters.map((f) => f.by));
    const others = (about?.breakdowns ?? []).filter(
      (/** @type {any} */ b) => b.name !== query.breakdown && (!used.has(b.name) || b.range),
    );
    const open = (/** @type {import("./query.js").Query} */ q) => () => context.add(write(q), dataset.name);
    /** @type {import("./menu.js").Item[]} */
    const items = [];
    if (part) {
      items.push({ heading: true, label: part.key });
      items.push({ label: "Only this", act: open(only(query, part, null)) });
      for (const b of others) items.push({ label: `Only this, by ${b.title}`, act: open(only(query, part, b.name)) });
      items.push({ heading: true, label: "All" });
    }
    for (const b of others)
      items.push({ label: `Break down by ${b.title}`, act: open({ ...query, breakdown: b.name }) });
    if (PATHS.has(query.breakdown ?? "")) {
      if (this.place) items.push({ label: "Over time", act: () => this.go(null) });
      else items.push({ label: "As a hierarchy", act: () => this.go([]) });
    }
    if (query.breakdown) items.push({ label: "Without a breakdown", act: open({ ...query, breakdown: null }) });
    items.push({ label: "Export as CSV", act: () => this.dispatchEvent(new CustomEvent("export", { bubbles: true })) });
    const box = from.getBoundingClientRect();
    showMenu(event?.clientX ?? box.left + 20, event?.clientY ?? box.bottom, items, from);
  }
}

/**
 * Adds what is not in a list yet at its end.
 * @template T
 * @param {HTMLElement} list its items have their keys
 * @param {T[]} shown
 * @param {(one: T) => string} key
 * @param {(one: T) => HTMLElement} item
 */
function appendNew(list, shown, key, item) {
  const there = new Set(Array.from(list.children, (own) => /** @type {HTMLElement} */ (own).dataset.key));
  list.append(...shown.filter((one) => !there.has(key(one))).map(item));
}

/**
 * @param {import("./query.js").Query | undefined} query
 * @param {any} about
 */
function describe(query, about) {
  if (!query) return "";
  const title = (/** @type {string} */ by) =>
    about?.breakdowns?.find((/** @type {any} */ b) => b.name === by)?.title ?? by;
  const filters = query.filters
    .map((f) => ` of ${title(f.by)} ${f.compare === "=" ? "" : `${f.compare} `}${f.operand}`)
    .join("");
  const group = about?.grouping ? `${about.grouping}: ` : "";
  const by = query.breakdown ? ` by ${title(query.breakdown)}` : "";
  return `${group}${about?.title ?? query.base}${filters}${by}`;
}

customElements.define("cenote-graph", Panel);
