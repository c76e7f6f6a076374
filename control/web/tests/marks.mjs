// A change of a setting as the page has it: a mark on each graph, in words when it is pointed at, and a row of the list.

import { createRequire } from "node:module";

const [, , npm, base, code, photographs, second, wanted] = process.argv;
const { chromium } = createRequire(`${npm}/node_modules/`)("playwright-core");
setTimeout(() => {
  console.error("it was not through in three minutes");
  process.exit(1);
}, 180000).unref();

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1300, height: 900 }, timezoneId: "UTC" });
  const page = await context.newPage();
  await page.goto(base);
  await page.fill("#code", code);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".card");
  await page.goto(`${base}#analytics/new/nbd.ops/io.bytes`);
  await page.waitForFunction(() => document.querySelectorAll("cenote-graph").length === 2);
  await page.selectOption(".toolbar select", "300");
  await page.waitForFunction((n) => document.querySelector("cenote-graph").context.changes.all.some((c) => c.time === n), Number(second));
  // The pointer of one graph is that of all.
  await page.evaluate((n) => document.querySelector("cenote-graph").context.axis.point(n), Number(second));
  const said = (text) => Array.from(document.querySelectorAll("cenote-graph .marked"), (m) => m.textContent.includes(text));
  await page.waitForFunction((text) => Array.from(document.querySelectorAll("cenote-graph .marked")).every((m) => m.textContent.includes(text)), wanted);
  const marked = await page.evaluate(said, wanted);
  await page.screenshot({ path: `${photographs}/marks.png` });
  await page.goto(`${base}#analytics`);
  await page.waitForSelector("#a-changes");
  const list = await page.textContent('section[aria-labelledby="a-changes"]');
  await page.screenshot({ path: `${photographs}/changes.png`, fullPage: true });
  console.log(JSON.stringify({ marked, list }));
} finally {
  await browser.close();
}
