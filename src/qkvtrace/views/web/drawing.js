/* What pictures are made of: elements, marks, numbers as text, and one card that says what is pointed at.
 *
 * Text of a corpus becomes textContent, never markup.
 */
"use strict";

const Drawing = (() => {
  /** An SVG element. */
  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    set(made, attributes);
    made.append(...children);
    return made;
  }

  /** An HTML element; `text` is its text, other names are attributes. */
  function html(tag, { text, ...attributes } = {}, ...children) {
    const made = document.createElement(tag);
    set(made, attributes);
    if (text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
  }

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === false) element.removeAttribute(name);
      else element.setAttribute(name, value === true ? "" : value);
    }
  }

  /** A mark around the origin, by kind: 0 for sentence A, 1 for B, around A's where both are; others. */
  function mark(kind, size) {
    const s = size;
    const shapes = [
      () => `M${-s},0a${s},${s} 0 1,0 ${2 * s},0a${s},${s} 0 1,0 ${-2 * s},0Z`,
      () => polygon([[0, -1.6], [1.6, 0], [0, 1.6], [-1.6, 0]]),
      () => polygon([[0, -1.2], [1.15, 0.85], [-1.15, 0.85]]),
      () => polygon([[-0.95, -0.95], [0.95, -0.95], [0.95, 0.95], [-0.95, 0.95]]),
      () => polygon([[0, 1.2], [1.15, -0.85], [-1.15, -0.85]]),
    ];
    const polygon = (corners) => `M${corners.map(([x, y]) => `${x * s},${y * s}`).join("L")}Z`;
    return shapes[kind % shapes.length]();
  }

  /** A number in at most `digits` decimals, with a true minus. */
  const number = (value, digits = 2) =>
    value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-/, "−")
      .replace(/^−(0(\.0+)?)$/, "$1");

  /** The same in little room: .98, −.12, 1 */
  const short = (value) => number(value).replace(/^(−?)0\./, "$1.").replace(/\.00$/, "")
    .replace(/^−?$/, "0");

  /** Round steps that cut `span` into about `parts`. */
  function step(span, parts) {
    const rough = span / parts;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  }

  /** The multiples of `by` within a range. */
  function ticks(low, high, by) {
    const first = Math.ceil(low / by - 1e-9);
    return Array.from({ length: Math.floor(high / by + 1e-9) - first + 1 }, (_, i) => (first + i) * by);
  }

  const pen = document.createElement("canvas").getContext("2d");

  /** How wide a text is, in pixels. */
  function width(text, size) {
    pen.font = `${size}px ${Colours.theme().font}`;
    return pen.measureText(text).width;
  }

  let card = null;

  /** Show the card with `lines` (nodes or text) near a place in the window; nothing hides it. */
  function tell(lines, x, y) {
    if (!card) document.body.append((card = html("div", { class: "explorer-card", role: "tooltip" })));
    card.replaceChildren(...lines.map((line) => (line instanceof Node ? line : html("div", { text: line }))));
    card.hidden = false;
    const { width, height } = card.getBoundingClientRect();
    const right = x + 14 + width < innerWidth ? x + 14 : x - 14 - width;
    card.style.left = `${Math.max(4, right)}px`;
    card.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - height - 4))}px`;
  }

  function hush() {
    if (card) card.hidden = true;
  }

  return { svg, html, set, mark, number, short, step, ticks, width, tell, hush };
})();
