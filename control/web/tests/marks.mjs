// A change of a setting as the page has it: a mark on each graph, in words when it is pointed at, and a row of the list.

import { loggedIn } from "./logged_in.mjs";

const [, , npm, base, code, photographs, second, wanted] = process.argv;

await loggedIn([npm, base, code], { width: 1300, height: 900 }, async (page) => {
  await page.goto(`${base}#analytics/new/nbd.ops/io.bytes`);
  await page.waitForFunction(() => document.querySelectorAll("cenote-graph").length === 2);
  await page.selectOption(".toolbar select", "300");
  await page.waitForFunction(
    (n) => document.querySelector("cenote-graph").context.changes.all.some((c) => c.time === n),
    Number(second),
  );
  // The pointer of one graph is that of all.
  await page.evaluate((n) => document.querySelector("cenote-graph").context.axis.point(n), Number(second));
  const said = (text) =>
    Array.from(document.querySelectorAll("cenote-graph .marked"), (m) => m.textContent.includes(text));
  await page.waitForFunction((text) => {
    const all = Array.from(document.querySelectorAll("cenote-graph .marked"));
    return all.every((m) => m.textContent.includes(text));
  }, wanted);
  const marked = await page.evaluate(said, wanted);
  await page.screenshot({ path: `${photographs}/marks.png` });
  await page.goto(`${base}#analytics`);
  await page.waitForSelector("#a-changes");
  const list = await page.textContent('section[aria-labelledby="a-changes"]');
  await page.screenshot({ path: `${photographs}/changes.png`, fullPage: true });
  console.log(JSON.stringify({ marked, list }));
});
