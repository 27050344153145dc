/* Studies as sections of a page: the question, what came out, each table drawn as its picture says.
 *
 * A study is what studies/<name>/study.json holds. Text of a corpus is data: it reaches the page as
 * textContent, and Plotly by way of Colours.plain.
 */
"use strict";

const Studies = (() => {
  const { html } = Drawing;
  const ROWS = 16; // of a table that is not drawn; the rest is folded

  /** What the studies of a run are about, and a list of them. */
  const header = ({ facts, studies, claims }) => [
    html("h1", { text: "How attention was learned" }),
    html("p", { class: "facts", text: facts }),
    html("ol", { class: "contents" },
      ...[...studies, ...(claims ? [Claims.titled(claims)] : [])].map(({ name, title }) =>
        html("li", {}, html("a", { href: `#${name}`, text: title })))),
  ];

  const sections = ({ studies, claims }) => [
    ...studies.map((study, i) => section(study, i + 1)),
    ...(claims ? [Claims.section(claims, studies.length + 1)] : []),
  ];

  /** A study as a section; `number` stands before its title. */
  function section(study, number) {
    return html("section", { class: "study", id: study.name },
      html("h2", { text: `${number}. ${study.title}` }),
      html("p", { class: "question", text: study.question }),
      ...study.says.map((text) => html("p", { class: "says", text })),
      ...study.tables.map(figure),
      html("p", { class: "look" }, html("strong", { text: "What to look for: " }), study.look),
      ...study.notes.map((note) => html("p", { class: "note", text: `Note: ${note}.` })));
  }

  /** A table as its picture, with its numbers folded below; without a picture, as itself. */
  function figure(table) {
    const caption = html("figcaption", { text: table.title });
    const made = html("figure", {}, caption);
    if (table.picture) made.append(...drawn(table, caption));
    else made.append(Tables.table(table.columns, table.rows.slice(0, ROWS)));
    if (table.picture || table.rows.length > ROWS) made.append(Tables.folded(table.columns, table.rows));
    return made;
  }

  /** A table's pictures and their key; `caption` takes the choice of dimensions. */
  function drawn({ picture, columns, rows: cells }, caption) {
    const rows = cells.map((row) => Object.fromEntries(row.map((cell, i) => [columns[i], cell])));
    const kind = Pictures[picture.kind];
    const shared = kind.shared(picture, rows);
    let space = 2;
    const plots = [];
    const panel = (members, named) => {
      const plot = html("div", { class: "plot" });
      plots.push(plot);
      plot.draw = () => kind.draw(plot, members, picture, shared, space);
      const [wide, high] = kind.size(members, picture, shared);
      if (wide) plot.style.width = `${wide}px`; // before it is drawn: links find their place
      plot.style.minHeight = `${high}px`;
      return html("div", { class: "panel" }, ...(named.length ? [title(members[0], named)] : []), plot);
    };
    // Panels that differ in the last column alone stand side by side under what they share.
    const all = Pictures.groups(rows, picture.panels).length;
    const rest = picture.panels.slice(0, -1);
    if (Pictures.groups(rows, rest).length === all) rest.length = 0;
    const lines = Pictures.groups(rows, rest).map((line) => html("div", {},
      ...(rest.length ? [title(line[0], rest)] : []),
      html("div", { class: `panels ${picture.kind}` },
        ...Pictures.groups(line, picture.panels).map((members) => panel(members, picture.panels.slice(rest.length))))));
    plots.forEach((plot) => watcher.observe(plot));
    if (picture.kind === "cloud" && picture.axes.length > 2) {
      caption.append(spaces((chosen) => {
        space = chosen;
        plots.filter((plot) => plot.seen).forEach((plot) => plot.draw());
      }));
    }
    return [kind.key(picture, shared, rows), ...lines];
  }

  /** What a panel is about: the values of some columns. */
  const title = (row, columns) =>
    html("h3", { text: columns.map((column) => Tables.named(column, row[column])).join(", ") });

  /** Two buttons: in the plane, in space. */
  function spaces(changed) {
    const buttons = [2, 3].map((dimensions) => {
      const button = html("button", { type: "button", text: `${dimensions}-d`, "aria-pressed": String(dimensions === 2) });
      button.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        changed(dimensions);
      });
      return button;
    });
    return html("div", { class: "spaces", role: "group", "aria-label": "Dimensions" }, ...buttons);
  }

  // A page has a hundred pictures: each is drawn when it is first seen.
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || target.seen) continue;
      target.seen = true;
      target.draw();
    }
  }, { rootMargin: "400px" });

  addEventListener("beforeprint", () => {
    for (const plot of document.querySelectorAll(".study .plot")) if (!plot.seen) plot.draw();
  });

  /** Draw again what was drawn, as after a change of theme. */
  function redraw() {
    for (const plot of document.querySelectorAll(".study .plot")) if (plot.seen) plot.draw();
  }

  return { header, sections, redraw };
})();
