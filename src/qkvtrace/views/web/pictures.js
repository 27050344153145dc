/* A study's table as its picture says: which columns of it are places, colours, labels, panels.
 *
 * Each kind has `shared`, what all panels of a table have in common (ranges, colours), `key`, what
 * the colours and shapes stand for, and `draw`, which draws one panel.
 */
"use strict";

const Pictures = (() => {
  const { html } = Drawing;
  const LINES = 260; // pixels
  const CONFIG = { displayModeBar: false, responsive: true };

  const different = (rows, column) => [...new Set(rows.map((row) => row[column]))];

  /** Rows that agree in `columns`, in the order in which they come. */
  function groups(rows, columns) {
    const found = new Map();
    for (const row of rows) {
      const key = JSON.stringify(columns.map((column) => row[column]));
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(row);
    }
    return [...found.values()];
  }

  /** The least and the largest number of a column. */
  function range(rows, column, room = 0) {
    const values = rows.map((row) => row[column]).filter((value) => value !== null);
    const [low, high] = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
    const margin = (high - low || 1) * room;
    return [low - margin, high + margin];
  }

  /** Which colour a row has by its `column`: the same for the same thing in every picture. */
  function painter(column, rows) {
    const values = different(rows, column);
    if (column === "vector") return (value) => Colours.vector[value] ?? Colours.theme().quiet;
    if (["token", "word"].includes(column)) return Colours.word;
    if (column === "epoch") return (value) => Colours.epoch(value / (Math.max(...values) || 1));
    return (value) => Colours.hues[values.indexOf(value) % Colours.hues.length];
  }

  const heatmap = {
    shared(picture, rows) {
      const panels = groups(rows, picture.panels.slice(-1)).length; // side by side
      if (picture.scale === "weight") return { panels, low: 0, high: 1, scale: "weights" };
      if (picture.scale === "cosine") return { panels, low: -1, high: 1, scale: "diverging" };
      const [low, high] = range(rows, picture.value);
      const reach = Math.max(-low, high) || 1;
      return low < 0 ? { panels, low: -reach, high: reach, scale: "diverging" }
        : { panels, low: 0, high: high || 1, scale: "weights" };
    },
    key: (picture, shared) => html("p", { class: "key" }, picture.value,
      html("span", { text: Tables.written(shared.low) }),
      html("span", { class: `bar ${shared.scale}` }), Tables.written(shared.high)),
    size: (...panel) => Matrix.size(heatmap.matrix(...panel)),
    draw: (plot, ...panel) => Matrix.draw(plot, heatmap.matrix(...panel)),
    /** A panel as Matrix.draw takes it. */
    matrix(rows, picture, shared) {
      const [down, across] = [side(rows, picture.row, picture.row_label),
        side(rows, picture.column, picture.column_label)];
      const values = down.names.map(() => across.names.map(() => null));
      for (const row of rows)
        values[down.at.get(row[picture.row])][across.at.get(row[picture.column])] = row[picture.value];
      const number = picture.scale === "number";
      const small = shared.panels > 3 && !number; // four of them fit into a row
      const many = across.names.length * (shared.panels > 3 ? 2 : 1) > 24 || down.names.length > 24;
      return {
        relation: picture.scale === "weight" ? " → " : " · ",
        rows: down.names, columns: across.names, values, ...shared,
        cell: many ? [13, 13] : small ? [25, 25] : [36, 27],
        write: many ? null : number ? rounded(shared.high) : small ? Drawing.short : Drawing.number,
        titles: [picture.row_title, picture.column_title],
      };
    },
  };

  /** Numbers of up to `most` with the decimals that a cell has room for. */
  function rounded(most) {
    const digits = most < 0.5 ? 3 : most < 10 ? 2 : most < 100 ? 1 : 0;
    return (value) => Drawing.number(value, digits).replace(/^(−?)0\./, "$1.");
  }

  /** What stands along a side of a matrix: names in order, and the place of each key. */
  function side(rows, column, label) {
    const names = new Map();
    for (const row of rows) if (!names.has(row[column])) names.set(row[column], row[label ?? column]);
    return {
      names: [...names.values()].map(Tables.written),
      at: new Map([...names.keys()].map((key, i) => [key, i])),
    };
  }

  const lines = {
    shared: (picture, rows) => ({
      range: range(rows, picture.y, 0.06), colour: painter(picture.colour, rows),
      dashes: picture.dash ? different(rows, picture.dash) : [],
    }),
    key: (picture, shared, rows) => Key.create([
      ...different(rows, picture.colour).map((value) => ({
        text: Tables.named(picture.colour, value), colour: shared.colour(value), dash: "solid",
      })),
      ...shared.dashes.map((value, i) => ({ text: Tables.named(picture.dash, value), dash: Key.dash(i) })),
    ]),
    size: () => [null, LINES],
    draw(plot, rows, picture, shared) {
      const traces = groups(rows, [picture.colour, picture.dash].filter(Boolean)).map((members) => {
        const color = shared.colour(members[0][picture.colour]);
        const dash = Key.dash(Math.max(shared.dashes.indexOf(members[0][picture.dash]), 0));
        return {
          type: "scatter", mode: members.length > 1 ? "lines" : "markers",
          x: members.map((row) => row[picture.x]), y: members.map((row) => row[picture.y]),
          line: { color, dash, width: 2 }, marker: { color },
          customdata: members.map((row) => about(row, [picture.x, picture.y])),
          hovertemplate: "%{customdata}<br>%{x}: <b>%{y:.4~g}</b><extra></extra>",
        };
      });
      Plotly.react(plot, traces, Colours.layout({
        height: LINES, showlegend: false, margin: { l: 52, t: 26, r: 12, b: 44 },
        title: above(picture.y_title || picture.y),
        xaxis: { title: { text: Colours.plain(picture.x_title || picture.x) } }, yaxis: { range: shared.range },
      }), CONFIG);
    },
  };

  /** What the axis that goes up counts, written above it where it can be read. */
  const above = (text) => ({
    text: Colours.plain(text), x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top",
    pad: { l: 4, t: 4 }, font: { size: 12, color: Colours.theme().quiet },
  });

  /** What is known of a row, a line each, but for some columns. */
  const about = (row, without) => Object.entries(row)
    .filter(([name, value]) => !without.includes(name) && value !== null)
    .map(([name, value]) => `${Colours.plain(name)}: ${Colours.plain(Tables.written(value))}`).join("<br>");

  const MOST_NAMED = 24; // points in space that carry names: there they cannot make way

  const cloud = {
    shared: (picture, rows) => ({
      ranges: picture.axes.map((axis) => range(rows, axis, 0.12)),
      colour: painter(picture.colour, rows),
      symbols: picture.symbol ? different(rows, picture.symbol) : [],
      high: groups(rows, picture.panels).length > 2 ? 330 : 440,
    }),
    key(picture, shared, rows) {
      const named = picture.colour !== picture.label; // else each point says itself what it is
      return Key.create([
        ...(named ? different(rows, picture.colour) : []).map((value) => ({
          text: Tables.named(picture.colour, value), colour: shared.colour(value), symbol: Key.symbol(0),
        })),
        ...(shared.symbols.length > 1 ? shared.symbols : []).map((value, i) => ({
          text: Tables.named(picture.symbol, value), symbol: Key.symbol(i),
          dash: picture.trail.length ? Key.dash(i) : null,
        })),
      ]);
    },
    size: (rows, picture, shared) => [null, shared.high],
    draw(plot, rows, picture, shared, dimensions) {
      const flat = dimensions === 2;
      const standing = rows.filter((row) =>
        !picture.marked.length || picture.marked.includes(row[picture.along]));
      const traces = [
        ...(picture.trail.length ? groups(rows, picture.trail) : []).map((members) =>
          trail(members, picture, shared, flat)),
        ...groups(standing, [picture.colour, picture.symbol].filter(Boolean)).map((members) =>
          marks(members, standing, picture, shared, flat)),
      ];
      const axis = (i, unit) => ({ title: { text: axisTitle(picture, i, unit) }, range: shared.ranges[i] });
      const layout = flat
        ? { annotations: labels(plot, standing, picture, shared), xaxis: axis(0, " of variance"),
          title: above(axisTitle(picture, 1, " of variance")), yaxis: { range: shared.ranges[1] },
          margin: { l: 44, t: 26, r: 12, b: 44 } }
        : { scene: box(axis), margin: { l: 0, t: 0, r: 0, b: 0 } };
      Plotly.react(plot, traces, Colours.layout({
        height: shared.high, showlegend: false, ...layout,
      }), CONFIG);
    },
  };

  const places = (rows, picture, flat) => ({
    type: flat ? "scatter" : "scatter3d",
    ...Object.fromEntries(["x", "y", "z"].slice(0, flat ? 2 : 3).map((name, i) =>
      [name, rows.map((row) => row[picture.axes[i]])])),
  });

  const shape = (row, picture, shared) => Math.max(shared.symbols.indexOf(row[picture.symbol]), 0);

  const trail = (members, picture, shared, flat) => ({
    ...places(members, picture, flat), mode: "lines", hoverinfo: "skip", opacity: 0.55,
    line: { color: shared.colour(members[0][picture.colour]), width: flat ? 1.5 : 4,
      dash: Key.dash(shape(members[0], picture, shared)) },
  });

  function marks(members, standing, picture, shared, flat) {
    const kind = shape(members[0], picture, shared);
    const color = shared.colour(members[0][picture.colour]);
    const last = picture.along && Math.max(...standing.map((row) => row[picture.along]));
    const ends = standing.filter((row) => !picture.trail.length || row[picture.along] === last);
    const named = (row) => ends.length <= MOST_NAMED && ends.includes(row);
    return {
      ...places(members, picture, flat), mode: flat ? "markers" : "markers+text",
      text: flat ? null : members.map((row) => (named(row) ? Colours.plain3d(row[picture.label]) : "")),
      textfont: { size: 10, color },
      marker: { color, symbol: Key.symbol(kind), size: Key.size(kind) / (flat ? 1 : 2),
        line: { width: kind % 2 ? 2 : 0 } },
      customdata: members.map((row) => about(row, picture.axes)),
      hovertemplate: "%{customdata}<extra></extra>",
    };
  }

  function labels(plot, standing, picture, shared) {
    const spots = standing.map((row) => ({
      x: row[picture.axes[0]], y: row[picture.axes[1]], text: String(row[picture.label]),
    }));
    const named = (points) => [...new Set(points.map(({ text }) => text))].join(" · ");
    return Labels.place(spots, shared.ranges, plot.clientWidth - 56, shared.high - 70, named);
  }

  const box = (axis) => ({
    aspectmode: "cube", camera: { eye: { x: 1.4, y: 1.4, z: 0.8 }, center: { x: 0, y: 0, z: -0.14 } },
    ...Object.fromEntries(["xaxis", "yaxis", "zaxis"].map((name, i) => [name, {
      ...axis(i, ""), gridcolor: Colours.theme().grid, color: Colours.theme().quiet,
      showbackground: false, zeroline: false, nticks: 5,
    }])),
  });

  function axisTitle(picture, i, unit) {
    const share = picture.explained[i];
    return share === undefined ? Colours.plain(picture.axes[i]) : `PC ${i + 1} (${Math.round(100 * share)} %${unit})`;
  }

  return { heatmap, lines, cloud, groups };
})();
