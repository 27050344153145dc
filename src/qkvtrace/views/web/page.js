/* The page: what it is about, the view to explore, and each study. All of its data is in it. */
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { html } = Drawing;

  Colours.know(data.vocabulary);
  const contents = data.studies.map((study) =>
    html("li", {}, html("a", { href: `#${study.name}`, text: study.title })));
  document.body.append(
    html("header", {}, html("h1", { text: "How attention was learned" }),
      html("p", { class: "facts", text: data.facts }), html("ol", { class: "contents" }, ...contents)),
    html("main", {}, ...data.studies.map((study, i) => Studies.section(study, i + 1))));
  Colours.follow(Studies.redraw);
})();
