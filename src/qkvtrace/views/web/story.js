/* The lines above a cloud: what is seen, in words and numbers that the scene holds, and its key. */
"use strict";

const Story = (() => {
  const { html, number } = Drawing;
  const [MOST_WORDS, MOST_KEYS] = [3, 9];

  const quoted = (text) => `“${text}”`;

  /** What the points are, as one sentence. */
  function what(state, about, scene) {
    const [a, b] = [state.a, state.b].map((index) =>
      index === null ? null : quoted(Choices.title(about.sentences[index])));
    const few = state.words && state.words.length <= MOST_WORDS;
    const words = !state.words ? "All words" : few ? state.words.map(quoted).join(", ")
      : `${state.words.length} words`;
    const where = state.sentences === "all" ? `of all ${about.sentences.length} sentences`
      : b === null ? `in ${a}` : `in A ${a} and B ${b}`;
    return `${words} ${where}: ${scene.points.length} vectors`;
  }

  /** How alike a word's vectors are in A and in B at an epoch, and were at first. */
  function alike(scene, index) {
    return scene.same.filter(({ cosines }) => Object.keys(cosines).length).slice(0, MOST_WORDS)
      .map(({ token, cosines }) => html("span", { class: "alike" },
        html("span", { class: "quiet", text: `cos(A, B) of “${token}” ` }),
        ...Object.entries(cosines).map(([vector, values]) => {
          const dot = html("span", { class: "dot" });
          dot.style.background = Colours.vector[vector];
          const [first, now] = [number(values[0]), number(values[index])];
          return html("span", { class: "number" }, dot, `${vector} ${now}`,
            html("span", { class: "quiet", text: first === now ? "" : ` from ${first}` }));
        })));
  }

  /** What colours and marks stand for. */
  function key(state, about, scene, kind) {
    const swatch = (colour, text) => {
      const dot = html("span", { class: "dot" });
      dot.style.background = colour;
      return html("span", { class: "item" }, dot, text);
    };
    const shape = (which, text, title) =>
      html("span", { class: "item", title }, Key.glyph({ symbol: Key.symbol(which) }), text);
    const items = [];
    if (state.colour === "vector" && !scene.same.length) {
      items.push(...state.vectors.map((vector) => swatch(Colours.vector[vector], vector)));
    }
    if (state.colour === "word") {
      const tokens = [...new Set(scene.points.map(({ token }) => token))];
      items.push(...tokens.slice(0, MOST_KEYS).map((token) => swatch(Colours.word(token), token)));
      if (tokens.length > MOST_KEYS) items.push(`and ${tokens.length - MOST_KEYS} more`);
    }
    const sentences = [...new Set(scene.points.map(({ sentence }) => sentence))];
    const letter = (index) => (index === state.a ? "A" : index === state.b ? "B" : `${index + 1}`);
    if (state.colour === "sentence") {
      const first = sentences.slice(0, MOST_KEYS);
      items.push(...first.map((index) => swatch(Colours.sentence(index), letter(index))));
      if (sentences.length > MOST_KEYS) items.push(`and ${sentences.length - MOST_KEYS} more`);
    }
    if (state.colour === "epoch") {
      const bar = html("span", { class: "bar epochs" });
      const [first, last] = [scene.epochs[0], scene.epochs.at(-1)];
      items.push(html("span", { class: "item" }, `epoch ${first}`, bar, `${last}`));
    }
    const kinds = [...new Set(sentences.map(kind))].sort();
    if (kinds.length > 1) {
      for (const which of kinds) {
        const text = ["A", "B", "others"][which];
        const index = [state.a, state.b][which];
        items.push(shape(which, text, which < 2 ? Choices.title(about.sentences[index]) : null));
      }
    }
    if (state.trails && (state.colour !== "epoch" || scene.points.length > Cloud.MOST_TRAILS)) {
      items.push(scene.points.length > Cloud.MOST_TRAILS
        ? html("span", { class: "item", text: `no trails: more than ${Cloud.MOST_TRAILS} points` })
        : html("span", { class: "item" },
          html("span", { class: "ring" }), `epoch ${scene.epochs[0]}`));
    }
    if (scene.points_left_out) items.push(`${scene.points_left_out} points left out: too many`);
    return items;
  }

  return { what, alike, key };
})();
