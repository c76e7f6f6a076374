// The page while much is open, in figures on the standard output. Each part is asked for by its name:
//
//   frames  sixteen graphs of what goes on: the times between frames while the page is left alone, and while a pointer goes over it
//   day     a day that was kept, by the minute, and an hour of it by the second: asked for, and drawn
//   week    a week of samples comes in while a graph is open: what the page has of it then, and what the browser has on its heap
//
// Before that, the first paint of the page for a client that is logged in.

import { join } from "node:path";
import { loggedIn } from "./logged_in.mjs";

const [, , npm, base, code, photographs, part, ...statistics] = process.argv;
const [SECONDS, DAY, PARTS] = [10, 86400, 24];

await loggedIn([npm, base, code], { width: 1500, height: 1000 }, async (page) => {
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  const paint = await firstPaint(page.context());
  await page.goto(`${base}#analytics/new/${statistics.map(encodeURIComponent).join("/")}`);
  await page.waitForFunction((n) => document.querySelectorAll("cenote-graph").length === n, statistics.length);
  const told = await { frames, day, week }[part](page);
  await page.screenshot({ path: join(photographs, `frames_${part}.png`), fullPage: part === "frames" });
  if (errors.length) throw new Error(`errors of the page's scripts: ${errors.slice(0, 5).join("; ")}`);
  console.log(JSON.stringify({ paint, ...told }));
});

/** Milliseconds; what else the machine does makes one of them late, so that the quickest of some counts. */
async function firstPaint(context) {
  let quickest = Infinity;
  for (let i = 0; i < 8 && (i < 2 || quickest >= 1000); i += 1) {
    const own = await context.newPage();
    await own.goto(base);
    await own.waitForSelector(".card");
    const paint = await own.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    quickest = Math.min(quickest, paint ?? Infinity);
    await own.close();
  }
  return quickest;
}

async function frames(page) {
  await page.waitForFunction(() =>
    Array.from(document.querySelectorAll("cenote-graph"), (g) => g.series.points.size).every((n) => n >= 10),
  );
  const follows = await between(page, async () => page.waitForTimeout(SECONDS * 1000));
  // Each of its steps draws all graphs anew: they show the same second.
  const box = await page.locator("cenote-graph canvas").first().boundingBox();
  const pointed = await between(page, async () => {
    const until = Date.now() + SECONDS * 1000;
    for (let i = 0; Date.now() < until; i += 1)
      await page.mouse.move(box.x + 70 + ((i * 3) % (box.width - 80)), box.y + box.height / 2);
  });
  await page.mouse.move(5, 5);
  const rows = await page.evaluate(() =>
    Array.from(document.querySelectorAll("cenote-graph"), (g) => {
      const keys = g.series.within(g.context.axis.view()).flatMap((point) => point.parts.map((part) => part.key));
      return new Set(keys).size;
    }),
  );
  return { follows, pointed, rows };
}

/** Times between frames while `work` is done. */
async function between(page, work) {
  await page.evaluate(() => {
    const all = [];
    window.frameTimes = all;
    let last = performance.now();
    const next = () => {
      if (window.frameTimes !== all) return;
      const now = performance.now();
      all.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  await work();
  const all = await page.evaluate(() => {
    const taken = window.frameTimes;
    window.frameTimes = null;
    return taken;
  });
  all.sort((a, b) => a - b);
  const at = (share) => Math.round(all[Math.min(all.length - 1, Math.floor(all.length * share))] * 10) / 10;
  return { frames: all.length, median: at(0.5), p95: at(0.95), worst: at(1) };
}

/**
 * The quickest of some, each of a page that has none of the samples; of more while none is as quick as on a quiet machine,
 * as with the first paint.
 */
async function day(page) {
  const spans = { day: [DAY, DAY / 60 - 10, 200], hour: [3600, 3500, 400] };
  const told = {};
  const both = (times) => times.asked + times.drawn;
  for (const [name, [span, least, quiet]] of Object.entries(spans)) {
    for (let i = 0; i < 12 && (i < 4 || both(told[name]) > quiet); i += 1) {
      const times = await page.evaluate(shown, { span, least });
      if (!told[name] || both(times) < both(told[name])) told[name] = times;
    }
  }
  await page.keyboard.press("n");
  await page.selectOption(".toolbar select", String(DAY));
  await page.waitForTimeout(1500);
  return told;
}

/** In the page: milliseconds to have what this span shows, and to draw it. */
async function shown({ span, least }) {
  const graph = document.querySelector("cenote-graph");
  const { context, series } = graph;
  const axis = context.axis;
  // It stands still, and what was asked for before is there.
  axis.end = axis.newest;
  axis.span = span;
  await series.turn;
  series.points.clear();
  series.to = series.from - 1;
  const began = performance.now();
  await series.need(axis.view(), context.signal);
  const there = performance.now();
  graph.draw();
  const drawn = performance.now();
  const points = series.within(axis.view());
  if (points.length < least) throw new Error(`${points.length} points where ${least} were kept`);
  const parts = points.reduce((sum, point) => sum + point.parts.length, 0);
  return {
    points: points.length,
    parts,
    asked: Math.round((there - began) * 10) / 10,
    drawn: Math.round((drawn - there) * 10) / 10,
  };
}

/** Samples come as they do, without the daemon and without the rests between them. */
async function week(page) {
  const heap = async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    await session.detach();
    return usedSize;
  };
  await page.evaluate(async (parts) => {
    const graph = document.querySelector("cenote-graph");
    const { series } = graph;
    // Nothing else comes meanwhile.
    graph.refresh = async () => {};
    graph.context.axis.tick = () => {};
    await series.turn;
    series.ask = async (from, to) => {
      for (let at = from; at <= to; at += 1) {
        const data = Array.from({ length: parts }, (_, i) => {
          const low = 2 ** (12 + Math.floor(i / 4)) * (1 + (i % 4) / 4);
          return { key: `from ${low}`, from: low, to: low * 1.25, value: (at * (i + 7)) % 97 };
        });
        const value = data.reduce((sum, one) => sum + one.value, 0);
        series.put({ sample: at, data: { value, data } });
      }
    };
    series.points.clear();
    series.to = series.from - 1;
  }, PARTS);
  const heaps = [];
  let most = 0;
  for (let n = 0; n < 7; n += 1) {
    const kept = await page.evaluate(async (seconds) => {
      const graph = document.querySelector("cenote-graph");
      const { context, series } = graph;
      const { axis } = context;
      let most = 0;
      for (let i = 0; i < seconds; i += 1) {
        axis.newest += 1;
        await series.need(axis.view(), context.signal);
        most = Math.max(most, series.points.size);
        if (i % 600) continue;
        graph.draw();
        // As between seconds: whatever waits gets its turn.
        if (i % 3600 === 0) await new Promise((turn) => setTimeout(turn));
      }
      return most;
    }, DAY);
    most = Math.max(most, kept);
    heaps.push(await heap());
  }
  return { points: most, heaps };
}
