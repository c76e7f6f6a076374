// Heat maps, as they are drawn: samples with known parts take the place of the daemon's on their way to the page, and what is looked
// at are the pixels, the labels beside them, and what the pointer tells.
//
//   bands of the picture, from below = the buckets that have something, as far from each other as their buckets are
//   a label at a height, the tip at that height = the same bucket

import { join } from "node:path";
import { createRequire } from "node:module";

const [, , npm, base, code, photographs] = process.argv;
const { chromium } = createRequire(join(npm, "node_modules/"))("playwright-core");
setTimeout(() => {
  console.error("it was not through in three minutes");
  process.exit(1);
}, 180000).unref();

const [K, M, G] = [2 ** 10, 2 ** 20, 2 ** 30];
/**
 * `parts`: bounds and value; `steps`: rows from each band to the next; `says`: what the tip says of each band; `labels`: some that
 * must be there.
 */
const CASES = [
  {
    statistic: "iscsi.ops[size]",
    // Four buckets for each power of two.
    parts: [
      [512, 640, 3],
      [4 * K, 5 * K, 40],
      [512 * K, 640 * K, 900],
      [M, 1280 * K, 200],
    ],
    steps: [12, 28, 4],
    says: ["512B to 640B: 3/s", "4K to 5K: 40/s", "512K to 640K: 900/s", "1M to 1.25M: 200/s"],
    labels: ["4K", "1M"],
  },
  {
    statistic: "iscsi.ops[latency]",
    parts: [
      [0, 320, 10],
      [327680, 393216, 500],
      [2 ** 30, 1.25 * 2 ** 30, 1],
    ],
    steps: [41, 47],
    says: ["0 to 320 ns: 10/s", "328 \u00b5s to 393 \u00b5s: 500/s", "1.07 s to 1.34 s: 1/s"],
    labels: ["1.05 ms"],
  },
  {
    statistic: "io.ops[offset]",
    // One width, which doubled meanwhile: both belong to one row.
    parts: [
      [0, 16 * M, 50],
      [16 * M, 32 * M, 50],
      [32 * M, 64 * M, 7],
      [G, G + 32 * M, 90],
    ],
    steps: [1, 31],
    says: ["0B to 32M: 100/s", "32M to 64M: 7/s", "1G to 1.03G: 90/s"],
    labels: ["0B", "1G"],
  },
  {
    // One bucket alone has an axis too.
    statistic: "iscsi.ops[op=read][size]",
    parts: [[64 * K, 80 * K, 12]],
    steps: [],
    says: ["64K to 80K: 12/s"],
    labels: ["64K"],
  },
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
let page;
try {
  page = await (await browser.newContext({ viewport: { width: 1500, height: 900 } })).newPage();
  // Labels are painted: they are written down as that happens.
  await page.addInitScript(() => {
    const paint = CanvasRenderingContext2D.prototype.fillText;
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...all) {
      this.canvas.painted = [];
      return clear.apply(this, all);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      if (this.textAlign === "right") this.canvas.painted?.push([text, y]);
      return paint.call(this, text, x, y);
    };
  });
  await page.route("**/api/analytics/v1/datasets/*/data?*", async (route) => {
    const response = await route.fetch();
    const of = CASES.find((c) => decodeURIComponent(route.request().url()).includes(`/${c.statistic}/`));
    if (!of || !response.ok()) return route.fulfill({ response });
    const body = await response.json();
    const data = of.parts.map(([from, to, value]) => ({ key: `key ${from}`, from, to, value }));
    const value = data.reduce((sum, part) => sum + part.value, 0);
    body.data = body.data.map((sample) => ({ ...sample, data: { value, data } }));
    return route.fulfill({ response, json: body });
  });
  await page.goto(base);
  await page.fill("#code", code);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".card");
  await page.goto(`${base}#analytics/new/${CASES.map((c) => encodeURIComponent(c.statistic)).join("/")}`);
  await page.waitForFunction((n) => document.querySelectorAll("cenote-graph").length === n, CASES.length);
  await page.selectOption(".toolbar select", "60");
  await page.waitForFunction(() =>
    Array.from(document.querySelectorAll("cenote-graph"), (g) => g.series.points.size).every((n) => n >= 5),
  );
  await page.keyboard.press("p");
  await page.waitForTimeout(500);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(photographs, `heat_${colorScheme}.png`) });
  }
  for (const one of CASES) await check(page, one);
  console.log(`${CASES.length} heat maps have their rows where their buckets are`);
} finally {
  // One of the questions always waits for the next second.
  await page?.unrouteAll({ behavior: "ignoreErrors" });
  await browser.close();
}

async function check(page, { statistic, steps, says, labels }) {
  const { box, bands, painted, last } = await page.evaluate((name) => {
    const graph = Array.from(document.querySelectorAll("cenote-graph")).find((g) => g.dataset.name === name);
    const { canvas, box } = graph;
    canvas.scrollIntoView({ block: "center" });
    // A column through the newest second but one, from below.
    const view = graph.context.axis.view();
    const x = box.x + ((view.to - 1 - view.from + 0.5) / (view.to - view.from + 1)) * box.width;
    const scale = canvas.width / canvas.clientWidth;
    const column = canvas.getContext("2d").getImageData(Math.round(x * scale), 0, 1, canvas.height).data;
    const isDrawn = (y) => column[y * 4 + 3] > 200;
    const bands = [];
    const bottom = Math.floor((box.y + box.height) * scale) - 1;
    const top = Math.ceil(box.y * scale);
    for (let y = bottom; y >= top; y -= 1) {
      if (isDrawn(y) && (y === bottom || !isDrawn(y + 1))) bands.push({ from: y / scale });
      if (isDrawn(y)) bands[bands.length - 1].to = y / scale;
      // Neighbours differ in their shade.
      const shade = (at) => column.slice(at * 4, at * 4 + 3).join();
      if (y > top && isDrawn(y) && isDrawn(y - 1) && shade(y) !== shade(y - 1)) bands.push({ from: (y - 1) / scale });
    }
    const all = new Set(canvas.painted.map(([text, y]) => `${text}@${y}`));
    return { box, bands, painted: Array.from(all, (a) => [a.split("@")[0], Number(a.split("@")[1])]), last: x };
  }, statistic);
  const fail = (what) => {
    throw new Error(`${statistic}: ${what}; bands ${JSON.stringify(bands)}, labels ${JSON.stringify(painted)}`);
  };
  if (bands.length !== says.length) fail(`${bands.length} bands where ${says.length} buckets are filled`);
  const middles = bands.map((band) => (band.from + band.to + 1) / 2);
  const unit = (middles[0] - middles[middles.length - 1]) / Math.max(1, steps.reduce((a, b) => a + b, 0));
  steps.forEach((rows, i) => {
    const off = middles[i] - middles[i + 1] - rows * unit;
    if (Math.abs(off) > 1.5) fail(`from band ${i} to the next it is ${off} pixels off ${rows} rows of ${unit}`);
  });
  const tip = async (y) => {
    const at = await page.evaluate((name) => {
      const graph = Array.from(document.querySelectorAll("cenote-graph")).find((g) => g.dataset.name === name);
      const { x, y } = graph.canvas.getBoundingClientRect();
      return { x, y };
    }, statistic);
    await page.mouse.move(at.x + last, at.y + y);
    await page.waitForTimeout(80);
    return page.evaluate((name) => {
      const graph = Array.from(document.querySelectorAll("cenote-graph")).find((g) => g.dataset.name === name);
      return graph.tip.hidden ? "nothing" : graph.tip.textContent;
    }, statistic);
  };
  for (const [i, middle] of middles.entries()) {
    const told = await tip(middle);
    if (!told.startsWith(says[i])) fail(`band ${i}: the pointer tells '${told}', not '${says[i]}'`);
  }
  for (const [text, y] of painted) {
    const told = await tip(y);
    if (!told.startsWith(`${text} to `)) fail(`beside the label ${text} the pointer tells '${told}'`);
  }
  for (const label of labels) if (!painted.some(([text]) => text === label)) fail(`no label ${label}`);
  painted.sort((a, b) => a[1] - b[1]);
  if (painted.some(([, y], i) => i > 0 && y - painted[i - 1][1] < 11)) fail("labels lie over one another");
  if (painted.some(([, y]) => y < box.y - 1 || y > box.y + box.height + 1)) fail("a label is outside of the picture");
}
