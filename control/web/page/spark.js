// A figure with the two minutes before it as a line.

import { fill, h } from "./dom.js";

const KEPT = 120;

export class Spark {
  /**
   * @param {string} title
   * @param {(value: number) => string} format
   */
  constructor(title, format) {
    this.format = format;
    /** @type {number[]} */
    this.values = [];
    this.figure = h("p", { class: "big" }, "\u2013");
    this.canvas = h("canvas", { class: "spark", role: "img", "aria-label": `${title}, the last two minutes` });
    this.peak = h("span", { class: "peak" });
    this.element = h("article", { class: "card" }, h("h3", {}, title), this.figure, this.canvas, this.peak);
  }

  /** @param {number} value */
  push(value) {
    this.values.push(value);
    if (this.values.length > KEPT) this.values.shift();
    fill(this.figure, this.format(value));
    fill(this.peak, `peak ${this.format(Math.max(...this.values))}`);
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    const { canvas, values } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    if (width === 0) return;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const top = Math.max(...values, 1e-9);
    const x = (/** @type {number} */ i) => width - (values.length - 1 - i) * (width / (KEPT - 1));
    const y = (/** @type {number} */ v) => height - 1.5 - (v / top) * (height - 4);
    context.beginPath();
    values.forEach((v, i) => (i ? context.lineTo(x(i), y(v)) : context.moveTo(x(i), y(v))));
    context.strokeStyle = style.color;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineTo(width, height);
    context.lineTo(x(0), height);
    context.globalAlpha = 0.12;
    context.fillStyle = style.color;
    context.fill();
  }
}
