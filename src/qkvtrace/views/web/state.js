/* What is chosen: from and to an address, and made valid for the run that it is chosen in. */
"use strict";

const State = (() => {
  const SPECIAL = new Set(["<unk>", "<pad>", "<sos>", "<eos>"]);
  const FIRST = { vectors: ["q", "k", "v", "x1"], sentences: "pair", colour: "vector",
    compare: "x1" };
  const COLOURS = ["vector", "word", "sentence", "epoch"];

  const whole = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : undefined);

  /** From the part of an address after #; what it does not say is undefined. */
  function parse(hash) {
    const said = new URLSearchParams(hash.replace(/^#/, ""));
    const words = said.getAll("word");
    return {
      run: said.get("run") ?? undefined,
      beside: said.get("beside") ?? undefined,
      site: said.get("site") ?? undefined,
      layer: whole(said.get("layer")),
      head: whole(said.get("head")),
      vectors: said.get("vectors")?.split(","),
      a: whole(said.get("a")),
      b: said.get("b") === "none" ? null : whole(said.get("b")),
      sentences: said.get("sentences") ?? undefined,
      words: words.length ? words : new Map([["all", null], ["none", []]]).get(said.get("words")),
      epoch: whole(said.get("epoch")),
      dimensions: said.get("view") === "3d" ? 3 : undefined,
      colour: said.get("colour") ?? undefined,
      trails: said.get("trails") === "no" ? false : undefined,
      compare: said.get("compare") ?? undefined,
    };
  }

  /** The other way round; what is as at first is left out, but for where to look. */
  function format(state) {
    const said = new URLSearchParams();
    const say = (name, value, first) => value !== first && said.append(name, value);
    say("run", state.run);
    say("beside", state.beside, undefined);
    say("site", state.site);
    say("layer", state.layer);
    say("head", state.head);
    say("vectors", state.vectors.join(","), FIRST.vectors.join(","));
    say("a", state.a);
    say("b", state.b ?? "none");
    say("sentences", state.sentences, FIRST.sentences);
    if (!state.words) said.append("words", "all");
    else if (!state.words.length) said.append("words", "none");
    else state.words.forEach((word) => said.append("word", word));
    if (state.epoch !== undefined) said.append("epoch", state.epoch);
    say("view", `${state.dimensions}d`, "2d");
    say("colour", state.colour, FIRST.colour);
    say("trails", state.trails ? "yes" : "no", "yes");
    say("compare", state.compare, FIRST.compare);
    return `#${said}`;
  }

  /** A state that can be shown for `about`, as near as possible to what is wanted. */
  function settle(wanted, about) {
    const site = about.sites.find(({ name }) => name === wanted.site) ?? about.sites[0];
    const below = (value, count) => (value < count ? value : 0);
    const there = about.sentences.length;
    const a = below(wanted.a ?? 0, there);
    let { b } = wanted;
    if (b !== null && !(b < there && b !== a)) b = there < 2 ? null : a === 1 ? 0 : 1;
    const known = (wanted.vectors ?? FIRST.vectors).filter((vector) => Object.hasOwn(site.widths, vector));
    const vectors = Object.keys(site.widths).filter((vector) =>
      known.includes(vector) && site.widths[vector] === site.widths[known[0]]);
    const state = {
      run: wanted.run,
      beside: wanted.beside,
      site: site.name,
      layer: below(wanted.layer ?? 0, site.layers),
      head: below(wanted.head ?? 0, site.heads),
      vectors: vectors.length ? vectors : FIRST.vectors,
      a,
      b,
      sentences: wanted.sentences === "all" ? "all" : "pair",
      words: wanted.words,
      epoch: wanted.epoch,
      dimensions: wanted.dimensions === 3 ? 3 : 2,
      colour: COLOURS.includes(wanted.colour) ? wanted.colour : FIRST.colour,
      trails: wanted.trails ?? true,
      compare: Object.hasOwn(site.widths, wanted.compare ?? "") ? wanted.compare : FIRST.compare,
    };
    if (state.words?.length) {
      const stand = new Set(standing(state, about));
      state.words = state.words.filter((word) => stand.has(word));
      if (!state.words.length) state.words = undefined;
    }
    if (state.words === undefined) state.words = firstWords(state, about);
    return state;
  }

  const siteOf = (state, about) => about.sites.find(({ name }) => name === state.site);

  /** The sides, "source" or "target", on which the chosen vectors' tokens stand. */
  const sides = (state, about) =>
    [...new Set(state.vectors.map((vector) => siteOf(state, about).axes[vector]))];

  /** The tokens that stand in the sentences of the cloud, as far as vectors are chosen there. */
  function standing(state, about) {
    const chosen = state.sentences === "all" ? about.sentences
      : [state.a, state.b].filter((index) => index !== null).map((index) => about.sentences[index]);
    const there = new Set(chosen.flatMap((sentence) =>
      sides(state, about).flatMap((side) => sentence[side])));
    return sides(state, about).flatMap((side) => about.words[side])
      .filter((word, i, all) => there.has(word) && all.indexOf(word) === i);
  }

  /** The words to look at first: of each side, that which stands next to where A and B part; of a
   * target also their first word. The first word of A where the two share none. */
  function firstWords(state, about) {
    const pair = [state.a, state.b ?? state.a].map((index) => about.sentences[index]);
    return [...new Set(sides(state, about).flatMap((side) => {
      const [one, other] = pair.map((sentence) =>
        sentence[side].filter((token) => !SPECIAL.has(token)));
      const shared = one.filter((token) => other.includes(token));
      if (!shared.length) return one.slice(0, 1);
      const parting = one.findIndex((token, i) => token !== other[i]);
      const at = parting < 0 ? one.length : parting;
      const beside = [one[at + 1], one[at - 1], ...shared].find((token) => shared.includes(token));
      return side === "target" ? [shared[0], beside] : [beside];
    }))];
  }

  /** The words after vectors on another side were chosen too: that side's first words join. */
  function following(old, state, about) {
    const fresh = sides(state, about).filter((side) => !sides(old, about).includes(side));
    if (!fresh.length) return state.words;
    const more = firstWords(state, about)
      .filter((word) => fresh.some((side) => about.words[side].includes(word)));
    return [...new Set([...state.words, ...more])];
  }

  /** The same choice in another run, whose sentences have other numbers; or why there is none. */
  function matched(state, run, about, first) {
    const text = (sentence) => sentence.source.join(" ");
    const find = (index) =>
      about.sentences.findIndex((other) => text(other) === text(first.sentences[index]));
    const site = about.sites.find(({ name }) => name === state.site);
    if (!site) return "this run has no such attention";
    if (state.layer >= site.layers) return `this run has ${site.layers} layers`;
    if (state.head >= site.heads) return `this run has ${site.heads} heads`;
    const [a, b] = [state.a, state.b].map((index) => (index === null ? null : find(index)));
    if (a === -1 || b === -1) return "this run has not recorded these sentences";
    return { ...state, run, a, b };
  }

  return { parse, format, settle, following, matched, standing, siteOf, SPECIAL, COLOURS };
})();
