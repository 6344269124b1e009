// What a screen reader is told.

const named = new Set(["button", "link", "combobox", "image", "img", "heading", "region", "navigation", "group", "DisclosureTriangle", "table", "columnheader", "rowheader"]);

/// Things in the accessibility tree that should have a name, and have none.
export async function names(context, tab) {
  const session = await context.newCDPSession(tab);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  const problems = [];
  const seen = (role) => nodes.filter((node) => !node.ignored && node.role?.value === role).length;
  for (const node of nodes) {
    const role = node.role?.value;
    if (node.ignored || !named.has(role) || node.name?.value?.trim()) continue;
    // Groups that Chromium makes of <details> and tables of layout are nothing to stop at.
    const focusable = node.properties?.some(({ name, value }) => name === "focusable" && value.value);
    if (["group", "table"].includes(role) && !focusable) continue;
    problems.push(`a ${role} without a name`);
  }
  if (!seen("main")) problems.push("no main landmark");
  if (!seen("image") && !seen("img")) problems.push("no chart in the accessibility tree");
  return problems;
}
