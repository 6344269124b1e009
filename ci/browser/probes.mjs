// Questions that are asked inside of the page. Each function is sent there by itself, so it can use nothing from outside.

/// Every chart that can be seen: its kind, and what is wrong with it.
export function charts() {
  // What a chart is about: without it, axes and words would pass for one.
  const marks = {
    comparison: ".fill", scaling: ".line, .ideal", latency: ".area", timeline: ".busy, .steal", steals: ".way, .cell",
    distribution: ".share", "task-times": ".column",
  };
  const size = (element) => { const { width, height } = element.getBoundingClientRect(); return { width, height }; };
  const described = (svg) => (svg.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent.trim());
  return [...document.querySelectorAll("svg[data-chart]")].filter((svg) => svg.checkVisibility()).map((svg) => {
    const kind = svg.dataset.chart;
    const problems = [];
    const { width, height } = size(svg);
    if (width < 100 || height < 20) problems.push(`is only ${width} by ${height}`);
    const seen = [...svg.querySelectorAll(marks[kind] ?? "*")].filter((mark) => { const own = size(mark); return own.width + own.height > 1; });
    if (seen.length < 1) problems.push("has no marks");
    if (svg.getAttribute("role") !== "img") problems.push("is no image to a screen reader");
    const texts = described(svg);
    if (texts.length !== 2 || texts.some((text) => !text)) problems.push("has no title and description");
    for (const text of [...svg.querySelectorAll("text")].filter((text) => text.checkVisibility())) {
      const inside = text.getBoundingClientRect(), frame = svg.getBoundingClientRect();
      if (inside.left < frame.left - 2 || inside.right > frame.right + 2) problems.push(`has words that stick out: ${text.textContent}`);
    }
    const axis = [...svg.querySelectorAll("text.axis")].filter((text) => text.checkVisibility()).map((text) => text.getBoundingClientRect());
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    if (axis.some((one, place) => axis.slice(place + 1).some((other) => meet(one, other)))) problems.push("has words on its axis that run into each other");
    for (const broken of svg.outerHTML.match(/="[^"]*(NaN|inf|undefined)[^"]*"/g) ?? []) problems.push(`has ${broken.slice(0, 60)}`);
    if (!svg.closest("figure")?.querySelector("details table tbody tr") && !svg.closest("details.family")?.querySelector("details table tbody tr")) problems.push("has no table");
    return { kind, id: svg.getAttribute("aria-labelledby").split(" ")[0], traced: !!svg.closest(".trace"), problems };
  });
}

/// One first heading, and no level left out.
export function headings() {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((heading) => heading.checkVisibility()).map((heading) => Number(heading.tagName[1]));
  const problems = [];
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) problems.push(`headings begin ${levels.slice(0, 3)}`);
  levels.forEach((level, place) => { if (place && level > levels[place - 1] + 1) problems.push(`heading ${place} jumps from ${levels[place - 1]} to ${level}`); });
  return problems;
}

/// What is wider than the page. Tables may be, in a box of their own that scrolls.
export function overflow() {
  const width = document.documentElement.clientWidth;
  const problems = [];
  if (document.documentElement.scrollWidth > width) problems.push(`the page is ${document.documentElement.scrollWidth} wide in ${width}`);
  for (const element of document.body.querySelectorAll("*:not(svg *)")) {
    if (element.closest(".scroll") || !element.checkVisibility() || element.id === "tip") continue;
    const { right } = element.getBoundingClientRect();
    if (right > width + 1) problems.push(`${element.tagName.toLowerCase()}.${element.className.baseVal ?? element.className} ends at ${Math.round(right)} of ${width}`);
  }
  return problems.slice(0, 5);
}

/// Words that are too faint: less than 4.5 to 1, or 3 to 1 if they are large.
export function contrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => channels(colour).slice(0, 3).map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const problems = new Set();
  for (const element of document.body.querySelectorAll("*")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!words || !element.checkVisibility() || element.closest("title, desc, script, style, #tip, .skip")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(element instanceof SVGElement ? style.fill : style.color), light(behind(element))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) problems.add(`contrast ${ratio.toFixed(2)} of "${element.textContent.trim().slice(0, 30)}"`);
  }
  return [...problems].slice(0, 5);
}
