/* One run's pictures: its cloud with the lines above it, its attention and cosines. */
"use strict";

const Side = (() => {
  const { html, tell, hush, number } = Drawing;
  const OTHER = 2; // the mark of sentences that are neither A nor B

  /** compare: called with the vector whose cosines are wanted; neighbours: asks for a point's. */
  function create(clouds, tables, { compare, neighbours }) {
    const [name, what, alike, key, error] = ["h2", "p", "p", "div", "p"].map((tag, i) =>
      html(tag, { class: ["run", "what", "alikes", "key", "error"][i] }));
    const place = html("div", { class: "cloud-holder" });
    const story = html("div", { class: "story" }, name, what, alike, key);
    const column = html("div", { class: "side" }, story, place, error);
    clouds.append(column);
    const row = html("div", { class: "row" });
    tables.append(row);
    const select = html("select", { "aria-label": "Vector whose cosines are shown" });
    select.addEventListener("change", () => compare(select.value));
    const grids = {
      a: table("weight", "Attention in A"),
      b: table("weight", "Attention in B"),
      alike: table("cosine", "Cosine of"),
    };
    grids.alike.heading.append(select, html("span", { class: "quiet" }));
    const cloud = Cloud.create(place, pointed);
    let [found, state, epoch, pointedAt] = [null, null, null, null];

    function table(kind, title) {
      const heading = html("h3", { text: title });
      const holder = html("div", { class: "grid-holder" });
      const whole = html("figure", { class: `table ${kind}` }, heading, holder);
      row.append(whole);
      const label = ({ rows, columns }) =>
        `${heading.textContent}: ${rows.join(" ")} by ${columns.join(" ")}`;
      return { whole, heading, picture: Grid.create(holder, { kind, label }) };
    }

    const kind = (sentence) => (sentence === state.a ? 0 : sentence === state.b ? 1 : OTHER);
    const letter = (sentence) => ["A", "B", ""][kind(sentence)];
    const named = (sentence) => letter(sentence) || `sentence ${sentence + 1}`;

    /** next: {name, about, cloud, a, b, alike} or {error}; titled: the dash of its curves, if its
     * name is to be said. */
    function show(next, nextState, titled) {
      [found, state] = [next, nextState];
      name.textContent = titled ? `${titled} ${found.name}` : "";
      const wrong = found.error ?? (found.cloud instanceof Error ? found.cloud.message : "");
      error.textContent = wrong && `${wrong[0].toUpperCase()}${wrong.slice(1)}.`;
      column.classList.toggle("failed", Boolean(wrong));
      row.hidden = Boolean(found.error);
      if (found.error) return;
      grids.b.whole.hidden = state.b === null;
      const vectors = Object.keys(State.siteOf(state, found.about).widths);
      select.replaceChildren(
        ...vectors.map((vector) => html("option", { value: vector, text: vector })));
      select.value = state.compare;
      grids.alike.heading.lastChild.textContent = state.b === null ? "within A" : "A × B";
      if (wrong) return;
      const { site, layer, head, vectors: kinds, words, a, b, sentences } = state;
      what.textContent = Story.what(state, found.about, found.cloud);
      key.replaceChildren(...Story.key(state, found.about, found.cloud, kind));
      cloud.show(found.cloud, {
        dimensions: state.dimensions, colour: state.colour, trails: state.trails, kind, letter,
        lettered: sentences === "pair" && state.b !== null,
        key: JSON.stringify([site, layer, head, kinds, words, a, b, sentences]),
      });
    }

    /** The last of `epochs` that is not after the one shown. */
    const at = (epochs) => Math.max(0, epochs.findLastIndex((other) => other <= epoch));

    function go(nextEpoch, time) {
      epoch = nextEpoch;
      if (!found || found.error) return;
      if (!(found.cloud instanceof Error)) {
        const index = at(found.cloud.epochs);
        alike.replaceChildren(...Story.alike(found.cloud, index));
        cloud.at(index, time);
      }
      for (const [part, { picture, heading }] of Object.entries(grids)) {
        const scene = found[part];
        const there = scene && !(scene instanceof Error);
        heading.title = scene instanceof Error ? scene.message : "";
        picture.show(there ? scene.tables[at(scene.epochs)] : null, state.words ?? []);
      }
    }

    /** What is said of a point; its neighbours follow when they are known. */
    async function pointed(point, x, y) {
      pointedAt = point;
      light(point);
      if (!point) return hush();
      const own = epoch;
      const { token, vector, sentence, position } = point;
      const lines = [
        html("strong", { text: `${token} ${vector}` }),
        `${named(sentence)}: ${Choices.title(found.about.sentences[sentence])}`,
        `position ${position}, epoch ${own}`,
      ];
      tell(lines, x, y);
      if (!neighbours) return;
      const nearest = await neighbours(found, point, own).catch(() => []);
      if (pointedAt !== point || epoch !== own || !nearest.length) return;
      const others = nearest.map((near) => html("div", { class: "near" },
        html("span", { text: number(near.cosine, 3) }),
        ` ${near.token} ${near.vector}, ${named(near.sentence)}`));
      tell([...lines, html("div", { class: "quiet", text: "nearest by cosine" }), ...others], x, y);
    }

    /** Bring out a point's word in the matrix of its sentence. */
    function light(point) {
      for (const part of ["a", "b"]) {
        const own = point && state[part] === point.sentence;
        const asKey = own && ["k", "v"].includes(point.vector);
        const [row, column] = !own ? [] : asKey ? [undefined, point.position] : [point.position];
        grids[part].picture.light(row, column);
      }
    }

    function remove() {
      column.remove();
      row.remove();
    }

    return { show, go, remove };
  }

  return { create };
})();
