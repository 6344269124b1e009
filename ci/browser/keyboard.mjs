// The page without a mouse.

/// Tab must reach the timeline, which must show that it is reached, and arrow keys must move and zoom it.
export async function keyboard(tab) {
  const problems = [];
  await tab.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
  await tab.keyboard.press("Tab");
  if (await tab.evaluate(() => document.activeElement.className) !== "skip") problems.push("the first Tab does not reach the skip link");
  const reached = async () => tab.evaluate(() => document.activeElement?.matches(".timeline"));
  for (let presses = 0; presses < 200 && !(await reached()); presses += 1) await tab.keyboard.press("Tab");
  if (!(await reached())) return [...problems, "Tab does not reach the timeline"];
  if (await tab.evaluate(() => getComputedStyle(document.activeElement).outlineStyle) === "none") problems.push("focus on the timeline cannot be seen");

  const box = () => tab.evaluate(() => document.activeElement.querySelector(".plane").getAttribute("viewBox").split(" ").map(Number));
  const press = async (key) => { await tab.keyboard.press(key); return box(); };
  const all = await box();
  const closer = await press("ArrowUp");
  if (!(closer[2] < all[2])) problems.push("arrow up does not zoom in");
  const right = await press("ArrowRight");
  if (!(right[0] > closer[0])) problems.push("arrow right does not move");
  const left = await press("ArrowLeft");
  if (!(left[0] < right[0])) problems.push("arrow left does not move");
  const farther = await press("ArrowDown");
  if (!(farther[2] > left[2])) problems.push("arrow down does not zoom out");
  await press("ArrowUp");
  const home = await press("Home");
  if (String(home) !== String(all)) problems.push("Home does not show all of it");

  await tab.locator("[data-zoom=in]:visible").first().click();
  const said = await tab.locator(".zoom:visible output").first().textContent();
  if (!/ to /.test(said)) problems.push(`the button does not zoom, or says nothing of it: ${said}`);
  await tab.locator("[data-zoom=all]:visible").first().click();
  return problems;
}
