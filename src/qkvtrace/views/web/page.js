/* The page: what it is about, the view to explore, and each study. All of its data is in it. */
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const add = (parent, tag, text, className = "") => {
    const made = document.createElement(tag);
    made.textContent = text;
    made.className = className;
    parent.append(made);
    return made;
  };

  Colours.know(data.vocabulary);
  const header = add(document.body, "header", "");
  add(header, "h1", "How attention was learned");
  add(header, "p", data.facts, "facts");
  const contents = add(header, "ol", "", "contents");
  const main = add(document.body, "main", "");
  data.studies.forEach((study, i) => {
    const link = add(add(contents, "li", ""), "a", study.title);
    link.href = `#${study.name}`;
    main.append(Studies.section(study, i + 1));
  });
  Colours.follow(() => Studies.redraw());
})();
