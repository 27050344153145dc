/* The choices at the left: what of which run is shown, and how. */
"use strict";

const Choices = (() => {
  const { html } = Drawing;
  const MANY = 30; // words; with more there is a field to find them by

  const title = (sentence) =>
    sentence.source.filter((token) => !State.SPECIAL.has(token)).join(" ");

  /** changed: called with what somebody chose, a part of a state. */
  function create(holder, fixed, changed) {
    const controls = {};
    let [state, about] = [null, null];

    function select(name, label, values) {
      const id = `qkv-${name}`;
      const made = html("select", { id });
      made.addEventListener("change", () => changed({ [name]: values(made.value) }));
      controls[name] = made;
      return row(html("label", { for: id, text: label }), made, fixed.includes(name));
    }

    const row = (label, control, hidden) => {
      const made = html("div", { class: "choice" }, label, control);
      made.hidden = hidden;
      return made;
    };

    /** A few buttons of which one is pressed. */
    function one(name, label, options) {
      const group = html("div", { class: "segments", role: "group", "aria-label": label });
      for (const [value, text] of options) {
        const button = html("button", { type: "button", text });
        button.addEventListener("click", () => changed({ [name]: value }));
        group.append(button);
      }
      controls[name] = { group, options };
      return row(html("span", { text: label }), group, fixed.includes(name));
    }

    function chips(name, label) {
      controls[name] = html("div", { class: "chips", role: "group", "aria-label": label });
      return controls[name];
    }

    const pair = html("div", { class: "choice" });
    const number = (text) => Number(text);
    const layer = select("layer", "Layer", number);
    const head = select("head", "Head", number);
    pair.append(...layer.childNodes, ...head.childNodes);
    pair.classList.add("two");

    const find = html("input", { type: "search", placeholder: "find", "aria-label": "Find words" });
    find.addEventListener("input", () => showWords());
    const everyWord = html("button", { type: "button", class: "link", text: "all" });
    everyWord.addEventListener("click", () => changed({ words: null }));
    const noWord = html("button", { type: "button", class: "link", text: "none" });
    noWord.addEventListener("click", () => changed({ words: [] }));
    const counted = html("span", { class: "quiet" });
    const hint = html("p", { class: "hint", role: "status" });

    const trails = html("input", { type: "checkbox", id: "qkv-trails" });
    trails.addEventListener("change", () => changed({ trails: trails.checked }));

    holder.replaceChildren(
      select("run", "Run", String),
      select("beside", "With", (text) => text || undefined),
      select("site", "Site", String),
      pair,
      html("h3", { text: "Vectors" }), chips("vectors", "Vectors"), hint,
      html("h3", { text: "Sentences", hidden: fixed.includes("a") }),
      select("a", "A", number),
      select("b", "B", (text) => (text === "" ? null : Number(text))),
      one("sentences", "Points", [["pair", "of A and B"], ["all", "of all"]]),
      html("h3", {}, html("span", { text: "Words" }), everyWord, noWord, counted),
      find, chips("words", "Words"),
      html("h3", { text: "Picture" }),
      one("dimensions", "Space", [[2, "2-d"], [3, "3-d"]]),
      select("colour", "Colour", String),
      row(html("label", { for: "qkv-trails", text: "Trails" }), trails, false),
    );
    fill(controls.colour, State.COLOURS.map((name) => [name, `by ${name}`]));

    /** Put options [value, text] into a select, unless they are there. */
    function fill(control, options) {
      const key = JSON.stringify(options);
      if (control.dataset.key === key) return;
      control.dataset.key = key;
      control.replaceChildren(...options.map(([value, text]) => html("option", { value, text })));
    }

    /** Show a state. runs: all there are; about: what the run offers. */
    function show(nextState, runs, nextAbout) {
      [state, about] = [nextState, nextAbout];
      const named = runs.map(({ name, recorded }) =>
        [name, recorded ? name : `${name} (nothing recorded)`]);
      fill(controls.run, named);
      fill(controls.beside, [["", "none"], ...named.filter(([name]) => name !== state.run)]);
      controls.run.value = state.run;
      controls.beside.value = state.beside ?? "";
      if (!about) return;
      const site = State.siteOf(state, about);
      fill(controls.site, about.sites.map(({ name, title: text }) => [name, text]));
      fill(controls.layer, Array.from({ length: site.layers }, (_, i) => [i, i]));
      fill(controls.head, Array.from({ length: site.heads }, (_, i) => [i, i]));
      const sentences = about.sentences.map((sentence, i) => [i, title(sentence)]);
      fill(controls.a, sentences);
      fill(controls.b, [["", "none"], ...sentences.filter(([i]) => i !== state.a)]);
      for (const name of ["site", "layer", "head", "a", "colour"]) {
        controls[name].value = state[name];
      }
      controls.b.value = state.b ?? "";
      for (const name of ["sentences", "dimensions"]) {
        const { group, options } = controls[name];
        [...group.children].forEach((button, i) =>
          button.setAttribute("aria-pressed", options[i][0] === state[name]));
      }
      trails.checked = state.trails;
      showVectors(site);
      showWords();
    }

    function showVectors(site) {
      toggles(controls.vectors, Object.keys(site.widths), state.vectors, (vector) => {
        const pressed = state.vectors.includes(vector);
        const width = site.widths[vector];
        const alike = state.vectors.filter((other) => site.widths[other] === width);
        const others = site.widths[state.vectors[0]];
        hint.textContent = pressed || alike.length === state.vectors.length ? ""
          : `${vector} has ${width} numbers, the others ${others}: no space holds both.`;
        const vectors = pressed ? without(state.vectors, vector) : [...alike, vector];
        if (vectors.length) changed({ vectors });
      }, (vector) => Colours.vector[vector]);
    }

    function showWords() {
      const all = State.standing(state, about);
      find.hidden = all.length <= MANY;
      const wanted = find.hidden ? "" : find.value.trim().toLowerCase();
      const found = all.filter((word) => word.toLowerCase().includes(wanted));
      const chosen = state.words ?? all;
      const shown = all.filter((word) => chosen.includes(word));
      counted.textContent = `${shown.length} of ${all.length}`;
      toggles(controls.words, found, chosen, (word) => {
        changed({ words: chosen.includes(word) ? without(chosen, word) : [...chosen, word] });
      });
    }

    const without = (list, item) => list.filter((other) => other !== item);

    function toggles(group, names, pressed, press, colour) {
      const key = JSON.stringify(names);
      if (group.dataset.key !== key) {
        group.dataset.key = key;
        group.replaceChildren(...names.map((name) => {
          const button = html("button", { type: "button", text: name, class: "chip" });
          if (colour) {
            const dot = html("span", { class: "dot", "aria-hidden": "true" });
            dot.style.background = colour(name);
            button.prepend(dot);
          }
          button.addEventListener("click", () => group.press(name));
          return button;
        }));
      }
      group.press = press;
      [...group.children].forEach((button, i) =>
        button.setAttribute("aria-pressed", pressed.includes(names[i])));
    }

    return { show };
  }

  return { create, title };
})();
