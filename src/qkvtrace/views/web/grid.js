/* A table of tokens by tokens that fits its place: attention weights, or cosines. */
// NOTE FROM THE LEAD to whoever works on the tab: the issue requires Plotly, so I replaced the SVG drawing of
// cloud, grid and curves by Plotly (names.js, space.js are gone; labels.js, key.js, matrix.js are shared with
// the page's studies). Slider move measured at 50-80 ms. Keep this; mend what you find broken; write browser
// tests against plot.data (document.querySelector(".cloud").data, ".curve", ".grid-holder > div"). This comment goes.
"use strict";

const Grid = (() => {
  const [LARGEST, WRITTEN] = [30, 19]; // pixels of a cell; from which one its number is written in it

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
      const [left, top] = Matrix.room(rows, columns);
      const cell = Math.max(2, Math.min(LARGEST, (holder.clientWidth - left - 6) / columns.length,
        (holder.clientHeight - top - 6) / rows.length));
      Matrix.draw(plot, {
        rows, columns, values, words, cell: [cell, cell], write: cell >= WRITTEN ? Drawing.short : null,
        ...(kind === "weight" ? { scale: "weights", low: 0, high: 1 } : { scale: "diverging", low: -1, high: 1 }),
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
