// Looks at a page of `heist report` as a reader would, in a real Chromium, and says what is wrong with it.
//
//   node check.mjs PAGE [--charts KIND,..] [--views NAME,..] [--screens FOLDER]
//
// --charts: those that must be there (all, if not given); --views: of `views` below; --screens: where pictures of the page go.
// HEIST_NODE is the folder where playwright-core is, HEIST_CHROMIUM the browser.
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { keyboard } from "./keyboard.mjs";
import { Pixels } from "./pixels.mjs";
import { charts, contrast, headings, overflow } from "./probes.mjs";
import { names } from "./tree.mjs";

const kinds = ["comparison", "scaling", "latency", "timeline", "steals", "distribution", "task-times"];

const desktop = { viewport: { width: 1280, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const views = {
  light: { ...desktop, colorScheme: "light" },
  dark: { ...desktop, colorScheme: "dark" },
  phone: { ...phone, colorScheme: "light" },
  "phone-dark": { ...phone, colorScheme: "dark" },
  "no-script": { ...desktop, colorScheme: "light", javaScriptEnabled: false },
};

const options = { charts: { type: "string" }, views: { type: "string" }, screens: { type: "string" } };
const { values: asked, positionals: [page] } = parseArgs({ options, allowPositionals: true });
const wanted = asked.charts === undefined ? kinds : asked.charts.split(",").filter(Boolean);
const file = pathToFileURL(resolve(page)).href;

const { chromium } = createRequire(`${process.env.HEIST_NODE}/`)("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.HEIST_CHROMIUM,
  timeout: 180_000,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const problems = [];
try {
  const pixels = await Pixels.open(browser);
  for (const name of asked.views?.split(",") ?? Object.keys(views)) await look(name, pixels);
} finally {
  await browser.close();
}
for (const problem of problems) console.error(`browser: ${problem}`);
console.log(problems.length ? `browser: ${problems.length} problems` : "browser: nothing is wrong with the page");
process.exitCode = problems.length ? 1 : 0;

// One view: loads the page, and asks everything of it.
async function look(name, pixels) {
  const complain = (what) => problems.push(`${name}: ${what}`);
  const context = await browser.newContext(views[name]);
  context.setDefaultTimeout(120_000);
  const tab = await context.newPage();
  tab.on("console", (message) => { if (["error", "warning", "assert"].includes(message.type())) complain(`console ${message.type()}: ${message.text()}`); });
  tab.on("pageerror", (error) => complain(`exception: ${error.message}`));
  tab.on("request", (request) => { if (request.url() !== file && !request.url().startsWith("data:")) complain(`asks the network: ${request.url()}`); });
  await tab.goto(file, { waitUntil: "load" });
  if (asked.screens) await picture(tab, name);

  await tab.evaluate(() => { for (const details of document.querySelectorAll("details.family")) details.open = true; });
  const seen = new Set();
  const choices = await tab.locator("#choice:visible option").count();
  for (let choice = 0; choice < Math.max(choices, 1); choice += 1) {
    if (choices) await tab.locator("#choice").selectOption(String(choice));
    for (const kind of await drawn(tab, pixels, complain, choice > 0)) seen.add(kind);
    for (const what of await tab.evaluate(headings)) complain(what);
    for (const what of await tab.evaluate(overflow)) complain(what);
  }
  if (choices) await tab.locator("#choice").selectOption("0");
  for (const kind of wanted) if (!seen.has(kind)) complain(`no chart: ${kind}`);

  for (const what of await names(context, tab)) complain(what);
  for (const what of await tab.evaluate(contrast)) complain(what);
  if (views[name].javaScriptEnabled !== false && wanted.includes("timeline")) {
    for (const what of await keyboard(tab)) complain(what);
  }
  await tab.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
  for (const what of await tab.evaluate(overflow)) complain(`with all tables open, ${what}`);
  await tab.emulateMedia({ media: "print" });
  for (const what of await tab.evaluate(overflow)) complain(`in print, ${what}`);
  await context.close();
}

// The kinds of charts that can be seen: there, with marks in them, and not of one colour. After a choice, only what it has changed.
async function drawn(tab, pixels, complain, chosen) {
  const found = await tab.evaluate(charts);
  const all = await tab.locator("svg[data-chart]:visible").all();
  for (const [place, chart] of found.entries()) {
    for (const what of chart.problems) complain(`${chart.id}: ${what}`);
    if (chosen && !chart.traced) continue;
    const { colours, largest } = await pixels.count(await all[place].screenshot());
    if (colours < 8 || largest > 0.995) complain(`${chart.id}: looks blank, with ${colours} colours`);
  }
  return found.map((chart) => chart.kind);
}

async function picture(tab, name) {
  mkdirSync(asked.screens, { recursive: true });
  await tab.screenshot({ path: `${asked.screens}/${name}.png`, fullPage: true });
}
