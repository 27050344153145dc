/* A matrix as a heat map: attention weights, cosines, or other numbers, tokens at its sides. */
"use strict";

const Matrix = (() => {
  const FONT = 11; // pixels of the names
  const MOST = 22; // letters of a name; the whole of it shows on hover

  const cut = (name, letters) =>
    (name.length > letters ? `${name.slice(0, letters - 1)}…` : name);

  /** Pixels that the names of rows and of columns take. */
  const room = (rows, columns, letters = MOST) => [rows, columns].map((names) =>
    9 + Math.max(...names.map((name) => Drawing.width(cut(name, letters), FONT))));

  /** How many pixels `draw` takes, across and down. */
  function size({ rows, columns, cell, titles = ["", ""], letters = MOST }) {
    const [left, top] = margins(rows, columns, titles, letters);
    return [left + cell[0] * columns.length + 6, top + cell[1] * rows.length + 6];
  }

  const margins = (rows, columns, titles, letters) =>
    room(rows, columns, letters).map((side, i) => side + (titles[i] ? 18 : 0));

  /** Draw into `plot`, or draw anew.
   *
   * rows, columns: names; values: numbers by row and column, or null; scale: "weights" (from low to
   * high) or "diverging" (around 0); cell: [width, height] in pixels; write: a number => its text in
   * its cell, or null for none; titles: [of the rows, of the columns]; words: names that
   * stand out; letters: the most of a name; relation: what stands between the names of row and
   * column when a cell is pointed at.
   */
  function draw(plot, {
    rows, columns, values, scale, low, high, cell, write, titles = ["", ""], words = [],
    letters = MOST, relation = " · ",
  }) {
    const [left, top] = margins(rows, columns, titles, letters);
    const [width, height] = size({ rows, columns, cell, titles, letters });
    const bold = (name, text) => (words.includes(name) ? `<b>${text}</b>` : text);
    const side = (names, title) => ({
      tickmode: "array", tickvals: names.map((_, i) => i),
      ticktext: names.map((name) => bold(name, Colours.plain(cut(name, letters)))),
      tickfont: { size: FONT }, ticks: "", showgrid: false, zeroline: false, automargin: false,
      fixedrange: true,
      title: { text: Colours.plain(title), standoff: 3, font: { size: FONT, color: Colours.theme().quiet } },
    });
    const trace = {
      type: "heatmap", z: values, zmin: low, zmax: high, colorscale: Colours[scale], showscale: false,
      xgap: 1, ygap: 1, hoverongaps: false,
      customdata: rows.map((row) => columns.map((column) => Colours.plain(row + relation + column))),
      hovertemplate: "%{customdata}<br><b>%{z:.4~g}</b><extra></extra>",
      ...(write ? { text: values.map((row) => row.map((value) => (value === null ? "" : write(value)))),
        texttemplate: "%{text}", textfont: { size: Math.min(10, cell[0] * 0.36) } } : {}),
    };
    return Plotly.react(plot, [trace], Colours.layout({
      width, height, margin: { l: left, t: top, r: 6, b: 6 },
      xaxis: { ...side(columns, titles[1]), side: "top", tickangle: -90 },
      yaxis: { ...side(rows, titles[0]), autorange: "reversed" },
    }), { displayModeBar: false });
  }

  return { draw, room, size };
})();
