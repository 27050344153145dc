/* The studies of a run as TensorBoard's tab shows them; the run stands in the address. */
"use strict";

(() => {
  const { html } = Drawing;
  const source = Sources.server(new URL(".", document.currentScript.src));
  const [header, main] = [html("header"), html("main")];

  async function show() {
    try {
      const { runs } = await source.runs();
      const run = new URLSearchParams(location.search).get("run") ?? runs[0].name;
      const select = html("select", { "aria-label": "Run" }, ...runs.map(({ name }) =>
        html("option", { value: name, text: name, selected: name === run })));
      select.addEventListener("change", () => location.assign(source.studies(select.value)));
      const back = html("a", { href: source.link(`#${new URLSearchParams({ run })}`), text: "← Q, K and V" });
      header.append(html("p", { class: "facts" }, back, " ", select));
      const data = await source.answers(run);
      Colours.know(data.vocabulary);
      header.append(...Studies.header(data));
      main.append(...Studies.sections(data));
    } catch (error) {
      main.append(html("p", { role: "alert", text: `${error.message[0].toUpperCase()}${error.message.slice(1)}.` }));
    }
  }

  document.body.append(header, main);
  Colours.follow(Studies.redraw);
  show();
})();
