// Opens the topics of a site anew for each of ROUNDS, and prints for each the milliseconds until something was painted, until the topics were there,
// and until the next page of them was.
import { launch } from "./launch.mjs";

const { SITE, ROUNDS } = process.env;
const browser = await launch();
for (let i = 0; i < Number(ROUNDS); i++) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const watch = new MutationObserver(() => {
      if (!globalThis.listed && document.querySelector("tbody tr")) globalThis.listed = performance.now();
      if (!globalThis.turned && document.querySelector("tbody a")?.textContent === "topic-0050") globalThis.turned = performance.now();
    });
    watch.observe(document, { childList: true, subtree: true, characterData: true });
  });
  await page.goto(SITE + "/ui/#/topics");
  await page.waitForFunction(() => globalThis.listed && performance.getEntriesByName("first-contentful-paint").length > 0);
  const pressed = await page.evaluate(() => {
    const at = performance.now();
    [...document.querySelectorAll(".pager button")].at(-1).click();
    return at;
  });
  await page.waitForFunction(() => globalThis.turned);
  const [painted, listed, turned] = await page.evaluate(() => [
    performance.getEntriesByName("first-contentful-paint")[0].startTime,
    globalThis.listed,
    globalThis.turned,
  ]);
  console.log([painted, listed, turned - pressed].join(" "));
  await context.close();
}
await browser.close();
