/* Where scenes come from: TensorBoard's server, or what a page holds.
 *
 * A source answers runs(), state(run), run(run), and for a choice cloud, attention, alike, curves
 * and (it may have none) neighbours, each with what qkvtrace/views/scene.py makes. `fixed` names the
 * choices that it does not offer, `first` what is chosen at first, as a part of a state. An Error's
 * message is a sentence for people.
 */
"use strict";

const Sources = (() => {
  /** base: the address of the plugin's routes. */
  function server(base) {
    async function ask(route, parameters = {}) {
      const address = new URL(route, base);
      for (const [name, value] of Object.entries(parameters)) {
        if (value !== null && value !== undefined) address.searchParams.set(name, value);
      }
      let answer;
      try {
        answer = await (await fetch(address)).json();
      } catch {
        throw new Error("TensorBoard does not answer: is it still running?");
      }
      if (answer.error) throw new Error(answer.error);
      return answer;
    }
    const where = ({ run, site, layer, head }) => ({ run, site, layer, head });
    const which = ({ vectors, sentences, a, b }) =>
      ({ vectors: vectors.join(","), sentences, a, b });
    return {
      live: true,
      first: {},
      fixed: [],
      link: (hash) => new URL(`view${hash}`, base).href,
      studies: (run) => new URL(`studies?${new URLSearchParams({ run })}`, base).href,
      runs: () => ask("runs"),
      state: (run) => ask("state", { run }),
      run: (run) => ask("run", { run }),
      cloud: (state) => ask("cloud", {
        ...where(state), ...which(state), words: state.words && JSON.stringify(state.words),
      }),
      attention: (state, sentence) => ask("attention", { ...where(state), sentence }),
      alike: (state) => ask("alike", {
        ...where(state), a: state.a, b: state.b ?? state.a, vector: state.compare,
      }),
      curves: (state) => ask("curves", where(state)),
      answers: (run) => ask("answers", { run }),
      neighbours: async (state, { vector, sentence, position }, epoch) => (await ask("neighbours", {
        ...where(state), ...which(state), vector, sentence, position, epoch,
      })).nearest,
    };
  }

  /** data: what qkvtrace/views/embedded.py makes: {about, first, places}, by "site/layer/head".
   *
   * Words and vectors are picked from the smallest cloud that has them, in whose space they stay.
   */
  function embedded(data) {
    const place = ({ site, layer, head }) => data.places[`${site}/${layer}/${head}`];
    return {
      live: false,
      first: data.first,
      fixed: ["run", "beside", "a", "b", "sentences"],
      link: () => null,
      runs: async () => ({ runs: [{ name: data.about.name, recorded: true }] }),
      state: async () => ({ version: data.about.version }),
      run: async () => data.about,
      cloud: async (state) => {
        const size = ({ points }) => points.length;
        const whole = place(state).clouds.filter((cloud) =>
          state.vectors.every((vector) => cloud.vectors.includes(vector)) &&
          (state.words ?? cloud.words).every((word) => cloud.words.includes(word)) &&
          (state.words || cloud.words.length > 1)).sort((a, b) => size(a) - size(b))[0];
        if (!whole) throw new Error("this page has no space of these together: choose fewer");
        return picked(whole, state);
      },
      attention: async (state, sentence) => place(state).attention[sentence],
      alike: async (state) => place(state).alike[state.compare],
      curves: async (state) => place(state).curves,
    };
  }

  function picked(whole, { vectors, words }) {
    const kept = whole.points.flatMap((point, i) =>
      vectors.includes(point.vector) && (!words || words.includes(point.token)) ? [i] : []);
    if (!kept.length) throw new Error("no word is chosen that stands in these sentences");
    return {
      ...whole,
      points: kept.map((i) => whole.points[i]),
      at: whole.at.map((epoch) => kept.map((i) => epoch[i])),
      same: whole.same.flatMap(({ token, cosines }) => (words?.includes(token) ? [{
        token,
        cosines: Object.fromEntries(
          Object.entries(cosines).filter(([vector]) => vectors.includes(vector))),
      }] : [])),
    };
  }

  return { server, embedded };
})();
