/* Studies as sections of a page: the question, what came out, each table drawn as its picture says.
 *
 * A study is what studies/<name>/study.json holds. Text of a corpus is data: it reaches the page as
 * textContent, and Plotly by way of Colours.plain.
 */
"use strict";

const Studies = (() => {
  const CONFIG = { displayModeBar: false, responsive: true };
  const ROWS = 12; // of a table that is not drawn; the rest is folded

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** A study as a section; `number` stands before its title. */
  function section(study, number) {
    const made = element("section", "study");
    made.id = study.name;
    made.append(
      element("h2", "", `${number}. ${study.title}`),
      element("p", "question", study.question),
    );
    for (const says of study.says) made.append(element("p", "says", says));
    for (const table of study.tables) made.append(figure(table));
    const look = element("p", "look");
    look.append(element("strong", "", "What to look for: "), study.look);
    made.append(look);
    for (const note of study.notes) made.append(element("p", "note", `Note: ${note}.`));
    return made;
  }

  /** A table as its picture, with its numbers folded below; without a picture, as itself. */
  function figure(table) {
    const made = element("figure");
    made.append(element("figcaption", "", table.title));
    const rows = records(table);
    if (!table.picture) {
      made.append(scrolled(grid(table.columns, table.rows.slice(0, ROWS))));
      if (table.rows.length > ROWS) made.append(numbers(table, "All"));
      return made;
    }
    const kind = { cloud, heatmap, lines }[table.picture.kind];
    const panels = element("div", `panels ${table.picture.kind}`);
    const pictures = groups(rows, table.picture.panels).map(({ key, members }) => ({
      title: key, members,
    }));
    const shared = kind.shared(table.picture, rows);
    const holders = pictures.map((panel) => {
      const holder = element("div", "panel");
      if (panel.title) holder.append(element("h3", "", panel.title));
      const plot = element("div", "plot");
      holder.append(plot);
      panels.append(holder);
      return { plot, panel };
    });
    let space = 2;
    const draw = ({ plot, panel }) => kind.draw(plot, panel.members, table.picture, shared, space);
    if (table.picture.kind === "cloud" && table.picture.axes.length > 2) {
      made.append(spaces((chosen) => {
        space = chosen;
        for (const holder of holders) if (holder.plot.seen) draw(holder);
      }));
    }
    made.append(kind.key(table.picture, shared, rows), panels, numbers(table, "The"));
    for (const holder of holders) whenSeen(holder.plot, () => draw(holder));
    return made;
  }

  /** Rows as objects by column. */
  const records = (table) =>
    table.rows.map((row) => Object.fromEntries(row.map((cell, i) => [table.columns[i], cell])));

  /** Rows that agree in `columns`, in the order in which they come; key names the columns' values. */
  function groups(rows, columns) {
    const found = new Map();
    for (const row of rows) {
      const key = columns.map((column) => {
        const value = row[column];
        return typeof value === "number" ? `${column} ${value}` : String(value);
      }).join(", ");
      if (!found.has(key)) found.set(key, { key, members: [] });
      found.get(key).members.push(row);
    }
    return [...found.values()];
  }

  const different = (rows, column) => [...new Set(rows.map((row) => row[column]))];

  /** Two buttons: in the plane, in space. */
  function spaces(changed) {
    const bar = element("div", "spaces");
    bar.setAttribute("role", "group");
    const buttons = [2, 3].map((dimensions) => {
      const button = element("button", "", `${dimensions}-d`);
      button.type = "button";
      button.onclick = () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        changed(dimensions);
      };
      button.setAttribute("aria-pressed", String(dimensions === 2));
      return button;
    });
    bar.append(...buttons);
    return bar;
  }

  // ---- tables

  const written = (cell) =>
    cell === null ? "" : typeof cell === "number" ? short(cell) : String(cell);

  const short = (number) =>
    Number.isInteger(number) ? String(number) : Math.abs(number) >= 1e-3 && Math.abs(number) < 1e5 ? number.toFixed(3) : number.toExponential(2);

  function grid(columns, rows) {
    const made = element("table");
    const head = made.createTHead().insertRow();
    for (const column of columns) {
      const cell = element("th", "", column);
      cell.scope = "col";
      head.append(cell);
    }
    const body = made.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const cell of row) {
        const place = line.insertCell();
        place.textContent = written(cell);
        if (typeof cell === "number") place.className = "number";
      }
    }
    return made;
  }

  function scrolled(content) {
    const made = element("div", "scrolled");
    made.tabIndex = 0;
    made.append(content);
    return made;
  }

  /** A table's rows, folded; made when they are first unfolded. */
  function numbers(table, which) {
    const made = element("details");
    made.append(element("summary", "", `${which} numbers (${table.rows.length} rows)`));
    made.addEventListener("toggle", () => {
      if (made.open && made.childElementCount === 1)
        made.append(scrolled(grid(table.columns, table.rows)));
    });
    return made;
  }

  /** What colours, dashes and symbols stand for: entries of {text, colour, dash, symbol}. */
  function legend(entries) {
    const made = element("p", "key");
    for (const { text, colour, dash, symbol } of entries.length > 1 ? entries : []) {
      const entry = element("span", "entry");
      entry.append(glyph(colour ?? "currentColor", dash, symbol), text);
      made.append(entry);
    }
    return made;
  }

  const STROKES = { solid: "", dash: "5 3", dot: "2 2", dashdot: "6 2 2 2" };

  /** A short line, a symbol, or both, as the pictures draw them. */
  function glyph(colour, dash, symbol) {
    const draw = (parent, name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      parent?.append(made);
      return made;
    };
    const svg = draw(null, "svg", { width: dash ? 24 : 12, height: 12, "aria-hidden": "true" });
    const middle = dash ? 12 : 6;
    if (dash)
      draw(svg, "line", { x1: 0, x2: 24, y1: 6, y2: 6, stroke: colour, "stroke-width": 2,
        "stroke-dasharray": STROKES[dash] });
    if (!symbol) return svg;
    const open = symbol.endsWith("open");
    const look = { fill: open ? "none" : colour, stroke: colour, "stroke-width": open ? 1.5 : 0 };
    const shape = symbol.replace("-open", "");
    if (shape === "circle") draw(svg, "circle", { cx: middle, cy: 6, r: 4, ...look });
    else draw(svg, "rect", { x: middle - 4, y: 2, width: 8, height: 8, ...look,
      transform: shape === "diamond" ? `rotate(45 ${middle} 6)` : "" });
    return svg;
  }

  // ---- pictures: each kind has what its panels share, and draws one panel

  const heatmap = {
    shared(picture, rows) {
      const values = rows.map((row) => row[picture.value]).filter((value) => value !== null);
      const low = Math.min(...values);
      const high = Math.max(...values);
      const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
      if (picture.scale === "weight") return { zmin: 0, zmax: 1, colours: "weights" };
      if (picture.scale === "cosine") return { zmin: -1, zmax: 1, colours: "diverging" };
      return low < 0
        ? { zmin: -reach, zmax: reach, colours: "diverging" }
        : { zmin: 0, zmax: high, colours: "weights" };
    },
    /** What the colours stand for, once for all panels. */
    key(picture, shared) {
      const made = element("p", "key");
      const bar = element("span", `bar ${shared.colours}`);
      made.append(picture.value, element("span", "", short(shared.zmin)), bar, short(shared.zmax));
      return made;
    },
    draw(plot, rows, picture, shared) {
      const down = axis(rows, picture.row, picture.row_label);
      const across = axis(rows, picture.column, picture.column_label);
      const z = down.keys.map(() => across.keys.map(() => null));
      for (const row of rows)
        z[down.at.get(row[picture.row])][across.at.get(row[picture.column])] = row[picture.value];
      const cell = across.keys.length > 40 ? 9 : across.keys.length > 20 ? 20 : 36;
      const tall = down.keys.length > 40 ? 9 : down.keys.length > 20 ? 20 : 28;
      const left = 18 + 7 * Math.max(...down.labels.map((label) => label.length));
      const top = 14 + 7 * Math.max(...across.labels.map((label) => label.length));
      const title = { row: picture.row_title ? 20 : 0, column: picture.column_title ? 20 : 0 };
      const trace = {
        type: "heatmap", z, zmin: shared.zmin, zmax: shared.zmax,
        colorscale: Colours[shared.colours], showscale: false, xgap: 1, ygap: 1,
        customdata: down.labels.map((row) => across.labels.map((column) =>
          `${Colours.plain(row)}<br>${Colours.plain(column)}`)),
        hovertemplate: "%{customdata}<br>%{z:.4~g}<extra></extra>",
      };
      if (cell === 36 && tall === 28) {
        trace.texttemplate = picture.scale === "number" ? "%{z:.3~g}" : "%{z:.2f}";
        trace.textfont = { size: 10 };
      }
      const ticks = (side) => ({
        tickmode: "array", tickvals: side.keys.map((_, i) => i),
        ticktext: side.labels.map(Colours.plain), showgrid: false, zeroline: false, ticks: "",
        automargin: false, fixedrange: true,
      });
      Plotly.react(plot, [trace], Colours.layout({
        width: left + title.row + cell * across.keys.length + 8,
        height: top + title.column + tall * down.keys.length + 8,
        margin: { l: left + title.row, t: top + title.column, r: 8, b: 8 },
        xaxis: { ...ticks(across), side: "top", tickangle: -90,
          title: { text: picture.column_title, standoff: 4, font: { size: 11 } } },
        yaxis: { ...ticks(down), autorange: "reversed",
          title: { text: picture.row_title, standoff: 4, font: { size: 11 } } },
      }), { ...CONFIG, responsive: false });
    },
  };

  /** What stands along one side of a matrix: keys in order, their labels, each one's place. */
  function axis(rows, column, label) {
    const labels = new Map();
    for (const row of rows) if (!labels.has(row[column])) labels.set(row[column], row[label ?? column]);
    const keys = [...labels.keys()];
    return {
      keys, labels: keys.map((key) => written(labels.get(key))),
      at: new Map(keys.map((key, i) => [key, i])),
    };
  }

  const lines = {
    shared(picture, rows) {
      const values = rows.map((row) => row[picture.y]).filter((value) => value !== null);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = (high - low || 1) * 0.06;
      return { range: [low - room, high + room], colour: painter(picture.colour, rows),
        dashes: picture.dash ? different(rows, picture.dash) : [] };
    },
    key(picture, shared, rows) {
      return legend([
        ...different(rows, picture.colour).map((value) => ({
          text: written(value), colour: shared.colour({ [picture.colour]: value }), dash: "solid",
        })),
        ...shared.dashes.map((value, i) => ({ text: written(value), dash: DASHES[i % 4] })),
      ]);
    },
    draw(plot, rows, picture, shared) {
      const by = [picture.colour, picture.dash].filter(Boolean);
      const traces = groups(rows, by).map(({ key, members }) => ({
        type: "scatter", mode: members.length > 1 ? "lines" : "markers", name: Colours.plain(key),
        x: members.map((row) => row[picture.x]), y: members.map((row) => row[picture.y]),
        line: { color: shared.colour(members[0]), width: 2,
          dash: DASHES[Math.max(shared.dashes.indexOf(members[0][picture.dash]), 0) % 4] },
        marker: { color: shared.colour(members[0]) },
        hovertemplate: `%{x}: %{y:.4~g}<extra>${Colours.plain(key)}</extra>`,
      }));
      Plotly.react(plot, traces, Colours.layout({
        height: 260, showlegend: false,
        xaxis: { title: { text: picture.x_title || picture.x } },
        yaxis: { title: { text: picture.y_title || picture.y }, range: shared.range },
        margin: { l: 56, t: 8, r: 12, b: 44 },
      }), CONFIG);
    },
  };

  /** Which colour a row has by its `column`: the same for the same thing in every picture. */
  function painter(column, rows) {
    const values = different(rows, column);
    if (column === "vector") return (row) => Colours.vector[row.vector] ?? Colours.theme().quiet;
    if (column === "token" || column === "word") return (row) => Colours.word(row[column]);
    if (column === "epoch") {
      const last = Math.max(...values) || 1;
      return (row) => Colours.epoch(row.epoch / last);
    }
    return (row) => Colours.hues[values.indexOf(row[column]) % Colours.hues.length];
  }

  // Every other one is open and larger, so that two points in one place show both.
  const SYMBOLS = ["circle", "diamond-open", "square", "circle-open", "diamond", "square-open"];
  const size = (shape, flat) => (shape % 2 ? 13 : 8) / (flat ? 1 : 2);
  const DASHES = ["solid", "dash", "dot", "dashdot"];

  const cloud = {
    shared(picture, rows) {
      const ranges = picture.axes.map((axis) => {
        const values = rows.map((row) => row[axis]).filter((value) => value !== null);
        const [low, high] = [Math.min(...values), Math.max(...values)];
        const room = (high - low || 1) * 0.12;
        return [low - room, high + room];
      });
      return {
        ranges, colour: painter(picture.colour, rows),
        symbols: picture.symbol ? different(rows, picture.symbol) : [],
      };
    },
    key(picture, shared, rows) {
      const named = picture.colour !== picture.label; // else each point says itself what it is
      return legend([
        ...(named ? different(rows, picture.colour) : []).map((value) => ({
          text: written(value), colour: shared.colour({ [picture.colour]: value }), symbol: "circle",
        })),
        ...(shared.symbols.length > 1 ? shared.symbols : []).map((value, i) => ({
          text: written(value), symbol: SYMBOLS[i % SYMBOLS.length], dash: picture.trail.length
            ? DASHES[i % 4] : undefined,
        })),
      ]);
    },
    draw(plot, rows, picture, shared, dimensions) {
      const flat = dimensions === 2;
      const kind = flat ? "scatter" : "scatter3d";
      const place = (members) => Object.fromEntries(
        ["x", "y", "z"].slice(0, dimensions).map((name, i) => [
          name, members.map((row) => row[picture.axes[i]]),
        ]));
      const shape = (row) => Math.max(shared.symbols.indexOf(row[picture.symbol]), 0);
      const traces = [];
      if (picture.trail.length) {
        for (const { members } of groups(rows, picture.trail)) {
          const colour = shared.colour(members[0]);
          traces.push({
            type: kind, mode: "lines", ...place(members), hoverinfo: "skip", showlegend: false,
            opacity: 0.55, line: { color: colour, width: flat ? 1.5 : 4,
              dash: DASHES[shape(members[0]) % 4] },
          });
        }
      }
      const standing = picture.marked.length
        ? rows.filter((row) => picture.marked.includes(row[picture.along])) : rows;
      const labels = flat ? Labels.place(standing.map((row) => ({
        x: row[picture.axes[0]], y: row[picture.axes[1]], text: String(row[picture.label]),
      })), shared.ranges, plot.clientWidth - 68, HEIGHT - 52) : null;
      const by = [...new Set([picture.colour, picture.symbol].filter(Boolean))];
      const end = picture.along && Math.max(...standing.map((row) => row[picture.along]));
      const latest = (row) => !picture.trail.length || row[picture.along] === end;
      for (const { key, members } of groups(standing, by)) {
        traces.push({
          type: kind, ...place(members), name: Colours.plain(key),
          mode: flat ? "markers" : "markers+text",
          text: flat ? undefined : members.map((row) => latest(row) ? Colours.plain(row[picture.label]) : ""),
          textfont: { size: 10, color: shared.colour(members[0]) },
          marker: { color: shared.colour(members[0]), size: size(shape(members[0]), flat),
            symbol: SYMBOLS[shape(members[0]) % SYMBOLS.length],
            line: { width: shape(members[0]) % 2 ? 2 : 0 } },
          customdata: members.map((row) => hover(row, picture)),
          hovertemplate: "%{customdata}<extra></extra>",
        });
      }
      const layout = flat
        ? { annotations: labels.map((label) => ({ ...label, text: Colours.plain(label.text),
            showarrow: false, font: { size: 11, color: Colours.theme().ink } })),
          xaxis: { title: { text: axisTitle(picture, 0, " of variance") }, range: shared.ranges[0] },
          yaxis: { title: { text: axisTitle(picture, 1, " of variance") }, range: shared.ranges[1] } }
        : { scene: { aspectmode: "cube", camera: { eye: { x: 1.4, y: 1.4, z: 0.8 }, center: { x: 0, y: 0, z: -0.14 } },
            ...Object.fromEntries(["xaxis", "yaxis", "zaxis"].map((name, i) => [name, {
              title: { text: axisTitle(picture, i), font: { size: 11 } }, range: shared.ranges[i],
              gridcolor: Colours.theme().grid, color: Colours.theme().quiet,
              showbackground: false, zeroline: false, nticks: 5 }])) } };
      Plotly.react(plot, traces, Colours.layout({
        height: HEIGHT, showlegend: false,
        margin: flat ? { l: 56, t: 8, r: 12, b: 44 } : { l: 0, t: 0, r: 0, b: 0 }, ...layout,
      }), CONFIG);
    },
  };
  const HEIGHT = 440;

  function axisTitle(picture, i, unit = "") {
    const share = picture.explained[i];
    return share === undefined ? picture.axes[i]
      : `PC ${i + 1} (${Math.round(100 * share)} %${unit})`;
  }

  /** What is known of a point, a line each; its coordinates are where it stands. */
  const hover = (row, picture) =>
    Object.entries(row).filter(([name]) => !picture.axes.includes(name))
      .map(([name, value]) => `${Colours.plain(name)}: ${Colours.plain(written(value))}`).join("<br>");

  // ---- drawn when first seen, and anew in another theme

  const waiting = new Map();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || entry.target.seen) continue;
      entry.target.seen = true;
      waiting.get(entry.target)();
    }
  }, { rootMargin: "400px" });

  function whenSeen(plot, draw) {
    waiting.set(plot, draw);
    watcher.observe(plot);
  }

  /** Draw again what was drawn, as after a change of theme. */
  function redraw() {
    for (const [plot, draw] of waiting) if (plot.seen && plot.isConnected) draw();
  }

  return { section, redraw };
})();
