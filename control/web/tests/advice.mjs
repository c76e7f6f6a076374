// The advice as the page has it, part by part, also on a phone; and that it goes when what is wrong is set right.
//
// The command to be carried out is printed by this script and carried out by the one that runs it, which says so by
// a line on the standard input: the page is open all the while, and asks again by itself.

import { createInterface } from "node:readline";
import { loggedIn } from "./logged_in.mjs";

const [, , npm, base, code, photographs, rule] = process.argv;

await loggedIn([npm, base, code], { width: 1300, height: 900 }, async (page) => {
  await page.goto(`${base}#maintenance/advice`);
  await page.waitForSelector(`main .advice[data-rule="${rule}"]`);
  await page.screenshot({ path: `${photographs}/advice.png`, fullPage: true });
  const cards = await page.evaluate(() =>
    Array.from(document.querySelectorAll("main .advice"), (card) => ({
      rule: card.dataset.rule,
      about: card.querySelector("h3").textContent,
      rows: Array.from(card.querySelectorAll("dl > div"), (row) =>
        ["dt", "dd"].map((part) => row.querySelector(part).textContent),
      ),
    })),
  );
  await page.setViewportSize({ width: 390, height: 800 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  console.log(JSON.stringify({ cards, wide }));
  for await (const _ of createInterface({ input: process.stdin })) break;
  const isGone = (rule) => !document.querySelector(`main .advice[data-rule="${rule}"]`);
  await page.waitForFunction(isGone, rule, { timeout: 120000 });
  console.log(JSON.stringify({ left: await page.locator("main .advice").count() }));
});
