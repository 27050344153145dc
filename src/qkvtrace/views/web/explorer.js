/* The view: choices, clouds, attention, cosines and curves of one run or of two, at one epoch.
 *
 * Explorer.create(holder, source): what a source is stands in sources.js.
 */
"use strict";

const Explorer = (() => {
  const { html, svg, set } = Drawing;
  const POLL = 2500; // ms between looks for new epochs and runs
  const PLAY = { all: 7000, least: 70, most: 700 }; // ms
  const SEEN = ["dimensions", "colour", "trails"]; // choices that need no other data
  const NOTHING_YET = "no snapshots in this run yet: they appear here as training makes them";
  const [PLAYS, PAUSES] = ["M3,1.5v13l11,-6.5z", "M3,2h3.6v12h-3.6zM9.4,2h3.6v12h-3.6z"];

  function create(holder, source) {
    const root = html("div", { class: "explorer" });
    const panel = html("div", { class: "panel" });
    const choices = html("details", { class: "choices", open: true },
      html("summary", { text: "Choices" }), panel);
    const clouds = html("div", { class: "clouds" });
    const notes = html("p", { class: "notes", role: "status" });
    const bars = html("p", { class: "caption" },
      "A row attends to a column", bar("weight", "0", "1"), "cosine", bar("cosine", "−1", "1"));
    const label = "Attention, cosines and curves";
    const tables = html("section", { class: "tables", "aria-label": label }, bars);
    const curveHolder = html("div", { class: "curves" });
    const icon = svg("path", { d: PLAYS });
    const play = html("button", { type: "button", class: "play" },
      svg("svg", { width: 16, height: 16 }, icon));
    const slider = html("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": "Epoch" });
    const reading = html("output", { class: "reading" });
    const outside = html("a", { target: "_blank", rel: "noopener", text: "New window" });
    const studies = html("a", { text: "Studies" });
    const copy = html("button", { type: "button", class: "link", text: "Copy link" });
    tables.append(curveHolder);
    root.append(choices, html("main", { class: "stage" }, clouds, notes), tables,
      html("footer", { class: "time" }, play, slider, reading));
    holder.append(root);

    let state = { ...State.parse(source.live ? location.hash : ""), ...source.first };
    let [runs, found, sides, epochs] = [[], [], [], []];
    let [turn, playing, writing] = [0, null, null];
    const remembered = new Map();
    const chooser = Choices.create(panel, source.fixed, change);
    const curves = Curves.create(curveHolder, (epoch) => go(Math.max(0, epochs.findLastIndex((own) => own <= epoch))));
    if (source.link("")) panel.append(html("p", { class: "links" }, studies, outside, copy));

    function bar(name, low, high) {
      return html("span", { class: "scale" }, low, html("span", { class: `bar ${name}` }), high);
    }

    // What is asked for.

    /** Ask a source once for the same thing; an answer that failed is asked for again. */
    function once(ask, ...what) {
      const key = JSON.stringify([ask, ...what]);
      if (!remembered.has(key)) {
        if (remembered.size > 60) remembered.delete(remembered.keys().next().value);
        const answer = source[ask](...what);
        remembered.set(key, answer);
        answer.catch(() => remembered.delete(key));
      }
      return remembered.get(key);
    }

    const caught = (promise) => Promise.resolve(promise).catch((error) => error);

    /** Ask for all that the state needs, and show it. */
    async function refresh() {
      const own = (turn += 1);
      root.classList.add("busy");
      try {
        ({ runs } = await source.runs());
        settleRuns();
        const names = [state.run, state.beside].filter((name) => name !== undefined);
        chooser.show(state, runs, null);
        const abouts = await Promise.all(names.map(async (name) => {
          if (!recorded(name)) return new Error(NOTHING_YET);
          return caught(once("run", name));
        }));
        if (own !== turn) return;
        if (abouts[0] instanceof Error) throw abouts[0];
        Colours.know(abouts[0].vocabulary ?? Object.values(abouts[0].words).flat());
        state = State.settle(state, abouts[0]);
        chooser.show(state, runs, abouts[0]);
        const next = await Promise.all(
          abouts.map((about, i) => scenes(names[i], about, abouts[0])));
        if (own !== turn) return;
        found = next;
        root.classList.remove("lost");
        build();
      } catch (error) {
        if (own === turn) lose(error);
      }
      if (own === turn) root.classList.remove("busy");
    }

    const recorded = (name) => runs.some((run) => run.name === name && run.recorded);

    function settleRuns() {
      const names = runs.map(({ name }) => name);
      if (state.run !== undefined && !names.includes(state.run)) {
        throw new Error(`no run is named “${state.run}” here: it may have been moved`);
      }
      state.run ??= (runs.find((run) => run.recorded) ?? runs[0]).name;
      if (!names.includes(state.beside) || state.beside === state.run) state.beside = undefined;
    }

    /** All of one run; the choice is made in `first`, whose sentences have other numbers here. */
    async function scenes(name, about, first) {
      if (about instanceof Error) return { name, error: about.message };
      const own = about === first ? state : State.matched(state, name, about, first);
      if (typeof own === "string") return { name, about, error: own };
      const [cloud, a, b, alike, shape] = await Promise.all([
        own.words?.length === 0 ? new Error("no word is chosen") : once("cloud", picked(own)),
        once("attention", where(own), own.a),
        own.b === null ? null : once("attention", where(own), own.b),
        once("alike", { ...where(own), a: own.a, b: own.b, compare: own.compare }),
        once("curves", where(own)),
      ].map(caught));
      return { name, about, state: own, cloud, a, b, alike, curves: shape };
    }

    const where = ({ run, site, layer, head }) => ({ run, site, layer, head });
    const picked = (own) => {
      const { vectors, sentences, a, b, words } = own;
      return { ...where(own), vectors, sentences, a, b, words };
    };

    // What is shown.

    function build() {
      if (sides.length !== found.length) {
        sides.forEach((side) => side.remove());
        sides = found.map(() => Side.create(clouds, tables, {
          compare: (vector) => change({ compare: vector }),
          neighbours: source.neighbours &&
            ((run, point, epoch) => once("neighbours", picked(run.state), point, epoch)),
        }));
        root.classList.toggle("two", found.length > 1);
        if (found.length > 1) root.append(curveHolder);
        else tables.append(curveHolder);
      }
      epochs = (found[0].cloud.epochs ?? found[0].curves.epochs ?? []);
      set(slider, { max: Math.max(epochs.length - 1, 0) });
      slider.disabled = play.disabled = epochs.length < 2;
      draw();
    }

    /** Draw what was found in the state's way. */
    function draw() {
      const dashes = found.length > 1 ? ["──", "╌╌"] : [];
      found.forEach((own, i) => sides[i].show(own, own.state ?? state, dashes[i]));
      curves.show(found.map((own) => own.curves).filter((own) => own && !(own instanceof Error)));
      const left = found.flatMap((own) => own.cloud?.left_out ?? []);
      const spaces = "Each run has a space of its own: compare shapes, not places.";
      notes.textContent = [
        found.length > 1 ? spaces : "",
        found[0].about?.note ?? "",
        ...left.map(({ epoch, reason }) => `Epoch ${epoch} is left out: ${reason}.`),
      ].filter(Boolean).join(" ");
      go(index());
    }

    /** The place of the state's epoch among the run's. */
    function index() {
      if (state.epoch === undefined) return epochs.length - 1;
      return Math.max(0, epochs.findLastIndex((epoch) => epoch <= state.epoch));
    }

    /** Show an epoch by its place; the points glide there in `time` ms. */
    function go(place, time = 0) {
      if (!epochs.length) return;
      const epoch = epochs[place];
      state.epoch = place === epochs.length - 1 ? undefined : epoch;
      slider.value = place;
      set(slider, { "aria-valuetext": `epoch ${epoch}` });
      reading.replaceChildren("epoch ", html("strong", { text: epoch }), ` of ${epochs.at(-1)}`);
      sides.forEach((side) => side.go(epoch, time));
      curves.at(epoch);
      write();
    }

    /** The state into the address, at most a few times a second. */
    function write() {
      const hash = State.format(state);
      if (!source.live) return;
      outside.href = source.link(hash);
      studies.href = source.studies(state.run);
      clearTimeout(writing);
      writing = setTimeout(() => {
        history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
      }, 200);
    }

    /** Nothing can be shown: say why. */
    function lose(error) {
      root.classList.add("lost");
      stop();
      notes.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
      if (runs.length) chooser.show(state, runs, null);
    }

    // What people do.

    function change(patch) {
      const old = state;
      state = { ...state, ...patch };
      if ("run" in patch) {
        state = { run: patch.run, beside: state.beside, dimensions: state.dimensions };
      } else if ("site" in patch && state.words) state.words = undefined;
      else if ("vectors" in patch && state.words && found.length) {
        state.words = State.following(old, state, found[0].about);
      }
      if (found.length && Object.keys(patch).every((name) => SEEN.includes(name))) {
        found.forEach((own) => own.state && Object.assign(own.state, patch));
        chooser.show(state, runs, found[0].about);
        return draw();
      }
      return refresh();
    }

    function start() {
      if (epochs.length < 2) return;
      const time = Math.min(Math.max(PLAY.all / epochs.length, PLAY.least), PLAY.most);
      if (index() === epochs.length - 1) go(0);
      const next = () => {
        if (index() === epochs.length - 1) return stop();
        playing = setTimeout(next, time);
        return go(index() + 1, time);
      };
      playing = setTimeout(next, time);
      set(icon, { d: PAUSES });
      set(play, { "aria-label": "Pause" });
    }

    function stop() {
      clearTimeout(playing);
      playing = null;
      set(icon, { d: PLAYS });
      set(play, { "aria-label": "Play" });
    }

    play.addEventListener("click", () => (playing ? stop() : start()));
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    document.addEventListener("keydown", (event) => {
      const used = event.target.closest?.("select, button, summary, a, input:not([type=range])");
      if (used || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!source.live && !root.contains(event.target)) return; // a page scrolls
      if (event.key === " ") {
        event.preventDefault();
        play.click();
      }
    });
    copy.addEventListener("click", async () => {
      copy.textContent = await navigator.clipboard.writeText(outside.href)
        .then(() => "Copied", () => "Not allowed here");
      setTimeout(() => (copy.textContent = "Copy link"), 1500);
    });

    // What happens meanwhile.

    async function poll() {
      if (document.hidden || root.classList.contains("busy")) return;
      const shown = [state.run, state.beside].filter(recorded);
      const was = JSON.stringify(runs);
      const next = await caught(source.runs());
      if (next instanceof Error) return;
      const states = await Promise.all(shown.map((name) => caught(source.state(name))));
      const shownVersion = (name) => found.find((own) => own.name === name)?.about?.version;
      const changed = states.some((now, i) =>
        !(now instanceof Error) && now.version !== shownVersion(shown[i]));
      if (!changed && JSON.stringify(next.runs) === was) return;
      if (changed) remembered.clear();
      await refresh();
    }

    new ResizeObserver(() => found.length && draw()).observe(root);
    Colours.follow(() => found.length && draw());
    const narrow = matchMedia("(max-width: 699px)");
    const fold = () => (choices.open = !narrow.matches);
    narrow.addEventListener("change", fold);
    fold();
    stop();
    refresh();
    if (source.live) setInterval(poll, POLL);
  }

  return { create };
})();
