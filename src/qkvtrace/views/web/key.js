/* What colours, dashes and symbols of a picture stand for. */
"use strict";

const Key = (() => {
  const { html, svg } = Drawing;
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const STROKES = { solid: null, dash: "5 3", dot: "2 2", dashdot: "6 2 2 2" };
  // Every other one is open and larger, so that two points in one place show both.
  const SYMBOLS = ["circle", "diamond-open", "square", "circle-open", "diamond", "square-open"];

  const dash = (i) => DASHES[i % DASHES.length];
  const symbol = (i) => SYMBOLS[i % SYMBOLS.length];
  const size = (i) => (i % 2 ? 13 : 8);

  /** entries: {text, colour, dash, symbol}; a single one needs no key. */
  function create(entries) {
    return html("p", { class: "key" }, ...(entries.length > 1 ? entries : []).map((entry) =>
      html("span", { class: "entry" }, glyph(entry), entry.text)));
  }

  /** A short line, a symbol, or both, as the pictures have them. */
  function glyph({ colour = "currentColor", dash: line, symbol: mark }) {
    const middle = line ? 12 : 6;
    const drawn = svg("svg", { width: 2 * middle, height: 12, "aria-hidden": "true" });
    if (line)
      drawn.append(svg("line", { x2: 24, y1: 6, y2: 6, stroke: colour, "stroke-width": 2,
        "stroke-dasharray": STROKES[line] }));
    if (!mark) return drawn;
    const open = mark.endsWith("open");
    const look = { fill: open ? "none" : colour, stroke: colour, "stroke-width": open ? 1.5 : 0 };
    drawn.append(mark.startsWith("circle") ? svg("circle", { cx: middle, cy: 6, r: 4, ...look })
      : svg("rect", { x: middle - 3.5, y: 2.5, width: 7, height: 7, ...look,
        transform: mark.startsWith("diamond") ? `rotate(45 ${middle} 6)` : null }));
    return drawn;
  }

  return { create, glyph, dash, symbol, size };
})();
