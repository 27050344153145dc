/* The page: what it is about, the view to explore, and each study. All of its data is in it. */
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { html } = Drawing;
  const explore = html("section", { class: "explore" });

  Colours.know(data.vocabulary);
  document.body.append(html("header", {}, ...Studies.header(data)),
    ...(data.explore ? [explore] : []), html("main", {}, ...Studies.sections(data)));
  Colours.follow(Studies.redraw);
  if (data.explore) Explorer.create(explore, Sources.embedded(data.explore));
})();
