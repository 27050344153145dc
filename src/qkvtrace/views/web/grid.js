/* A table of tokens by tokens that fits its place: attention weights, or cosines. */
"use strict";

const Grid = (() => {
  const [LARGEST, WRITTEN] = [40, 23]; // pixels of a cell; from which on its number is in it
  const LETTERS = 11; // of a name; the whole of it shows on hover

  /** kind: "weight" or "cosine"; label: a table => what it is, for those who do not see it. */
  function create(holder, { kind, label }) {
    const plot = Drawing.html("div", { role: "img" });
    holder.replaceChildren(plot);
    let table = null;

    /** Show a table {rows, columns, values}; null: nothing. words: those whose names stand out. */
    function show(next, words = []) {
      table = next;
      plot.hidden = !table;
      if (!table) return;
      const { rows, columns, values } = table;
      const [left, top] = Matrix.room(rows, columns, LETTERS);
      const cell = Math.max(2, Math.min(LARGEST, (holder.clientWidth - left - 6) / columns.length,
        (holder.clientHeight - top - 6) / rows.length));
      Matrix.draw(plot, {
        rows, columns, values, words, cell: [cell, cell], letters: LETTERS,
        relation: kind === "weight" ? " → " : " · ",
        write: cell >= WRITTEN ? Drawing.short : null,
        scale: kind === "weight" ? "weights" : "diverging", low: kind === "weight" ? 0 : -1, high: 1,
      });
      plot.setAttribute("aria-label", label(table));
    }

    /** Frame a row, a column, or neither, by position. */
    function light(row, column) {
      if (!table) return;
      const box = (x0, x1, y0, y1) => ({ type: "rect", x0, x1, y0, y1,
        line: { color: Colours.theme().accent, width: 2 } });
      const [wide, high] = [table.columns.length - 0.5, table.rows.length - 0.5];
      Plotly.relayout(plot, { shapes: [
        ...(row === undefined ? [] : [box(-0.5, wide, row - 0.5, row + 0.5)]),
        ...(column === undefined ? [] : [box(column - 0.5, column + 0.5, -0.5, high)]),
      ] });
    }

    return { show, light };
  }

  return { create };
})();
