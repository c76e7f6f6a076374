// What the page shows of one second: told on the standard output, for a comparison with what else tells of it.
//
//   graphs of these statistics ─▶ paused ─▶ the pointer moved by keys until it is at the second ─▶ the figures below each graph

import { loggedIn } from "./logged_in.mjs";

const [, , npm, base, code, , second, ...statistics] = process.argv;

await loggedIn([npm, base, code], { width: 1500, height: 900 }, async (page) => {
  await page.goto(`${base}#analytics/new/${statistics.map(encodeURIComponent).join("/")}`);
  await page.waitForFunction((n) => document.querySelectorAll("cenote-graph").length === n, statistics.length);
  await page.selectOption(".toolbar select", "60");
  // It stands; a page that comes late on a busy machine goes back. The keys move the pointer by seconds then.
  await page.click("#pause");
  const isSeen = (n) => document.querySelector("cenote-graph").context.axis.view().from <= n;
  while (!(await page.evaluate(isSeen, Number(second)))) await page.click('[aria-label="Earlier"]');
  const wanted = `${new Date(Number(second) * 1000).toISOString().slice(0, 19).replace("T", " ")}`;
  const shown = () =>
    page.evaluate(() =>
      Array.from(document.querySelectorAll("cenote-graph .figures"), (figures) => figures.textContent ?? ""),
    );
  await page.waitForFunction(
    (n) => Array.from(document.querySelectorAll("cenote-graph"), (g) => g.series.points.has(n)).every(Boolean),
    Number(second),
  );
  for (let n = 0; ; n += 1) {
    const all = await shown();
    if (all.every((text) => text.startsWith(wanted))) {
      console.log(JSON.stringify(all.map((text) => text.slice(wanted.length).split("average")[0].trim())));
      break;
    }
    if (n > 400) throw new Error(`no figures of ${wanted}: ${all.join("; ")}`);
    await page.focus("cenote-graph canvas");
    await page.keyboard.press("ArrowLeft");
    await page.waitForTimeout(60);
  }
});
