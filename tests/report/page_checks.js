// Returns what is wrong with the open page, as a list of sentences.
// oxlint-disable-next-line no-unused-expressions -- the tests call it
() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const name = (element) => `<${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`;
  document.querySelectorAll("details").forEach((details) => {
    details.open = true;
  });
  if (document.documentElement.scrollWidth > width) found.push("the document is wider than the page");
  const hidden = (element) => {
    // shown to screen readers only
    const part = element.closest("thead, caption");
    return part && getComputedStyle(part).position === "absolute";
  };

  for (const element of document.querySelectorAll("main *, footer *")) {
    const box = element.getBoundingClientRect();
    if (hidden(element) || box.width === 0) continue;
    if (box.right > width + 0.5) found.push(`wider than the page: ${name(element)}`);
    if (box.left < -0.5) found.push(`outside the page: ${name(element)}`);
    if (element.clientWidth && element.scrollWidth > element.clientWidth + 1) found.push(`clipped: ${name(element)}`);
  }
  for (const image of document.images) {
    if (!image.naturalWidth) found.push(`broken image: ${image.alt}`);
    if (!image.alt) found.push("an image without alternative text");
  }
  if (/\bnan\b/i.test(document.body.innerText)) found.push("nan is shown");
  if (!document.querySelector("main .conclusion li")?.textContent.trim()) found.push("no conclusion");

  const luminance = (colour) => {
    const [r, g, b] = colour
      .map((value) => value / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const background = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(each).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("main *, footer *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    if (!own || hidden(element)) continue;
    const pair = [parse(getComputedStyle(element).color).slice(0, 3), background(element)].map(luminance);
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(1)}: ${name(element)}`);
  }
  return found;
};
