/* Numbers and rows as text: cells, tables, and tables that unfold. */
"use strict";

const Tables = (() => {
  const { html } = Drawing;
  const SITES = { encoder_self: "encoder self-attention", decoder_self: "decoder self-attention",
    cross: "cross-attention" };
  const NOTHING = 1e-6; // what float32 leaves where it should be 0

  /** A cell of a study's table as text. */
  function written(cell) {
    if (cell === null) return "";
    if (typeof cell !== "number") return String(cell);
    const size = Math.abs(cell);
    if (Number.isInteger(cell)) return minus(String(cell));
    return minus(size < NOTHING ? "0.000" : size < 1e-3 || size >= 1e5 ? cell.toExponential(1) : cell.toFixed(3));
  }

  /** A cell that stands in a title or a key: a site by its full name, a number with its kind. */
  const named = (column, cell) => (column === "site" && SITES[cell]) ||
    (["epoch", "layer", "head"].includes(column) ? `${column} ${cell}` : written(cell));

  const minus = (text) => text.replace(/^-/, "−");

  function table(columns, rows) {
    const head = html("tr", {}, ...columns.map((column) => html("th", { scope: "col", text: column })));
    const lines = rows.map((row) => html("tr", {}, ...row.map((cell) =>
      html("td", { class: typeof cell === "number" ? "number short" : written(cell).length < 14 ? "short" : null,
        text: written(cell) }))));
    const whole = html("table", {}, html("thead", {}, head), html("tbody", {}, ...lines));
    return html("div", { class: "scrolled", tabindex: 0 }, whole);
  }

  /** All rows, folded; they are made when they are first unfolded. */
  function folded(columns, rows) {
    const made = html("details", {}, html("summary", { text: `All numbers (${rows.length} rows)` }));
    made.addEventListener("toggle", () => {
      if (made.open && made.childElementCount === 1) made.append(table(columns, rows));
    });
    return made;
  }

  return { written, named, table, folded };
})();
