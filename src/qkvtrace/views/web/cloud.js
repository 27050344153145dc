/* The point cloud: vectors as points that move from epoch to epoch, trails behind them. */
"use strict";

const Cloud = (() => {
  const MOST_TRAILS = 300; // points; with more, trails are a carpet, and slow
  const MOST_SVG = 500; // points that are drawn one by one; more of them by WebGL
  const MOST_PLACES = 300; // places in the plane that are named where there is room
  const MOST_NAMED = 24; // points in space that carry names: there they cannot make way
  const MOST_GLIDING = 100; // points that glide from epoch to epoch; more of them jump
  const RECENT = 5; // epochs of a trail that stand out
  const MARGIN = { l: 40, r: 14, t: 26, b: 44 };
  const CONFIG = { displaylogo: false, scrollZoom: true, doubleClick: "reset",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "resetCameraLastSave3d",
      "hoverClosest3d"] };

  /** pointed: called with a point and a place in the window, or with null. */
  function create(holder, pointed) {
    const plot = Drawing.html("div", { class: "cloud" });
    holder.replaceChildren(plot);
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    let [scene, options, index, frame] = [null, {}, 0, null];
    let [places, gliding] = [[], 0]; // where the points are: at an epoch, or on the way to it

    /** Take a scene of `cloud`.
     *
     * next.dimensions: 2 or 3; colour: what decides a point's; trails: whether; kind: (sentence) =>
     * which mark; letter: (sentence) => "A", "B" or ""; lettered: whether names say them; key:
     * another text for another choice of points.
     */
    function show(nextScene, next) {
      scene = nextScene;
      options = next;
      index = Math.min(index, scene.epochs.length - 1);
      cancelAnimationFrame(gliding);
      places = scene.at[index];
      fit();
    }

    /** Draw anew, for the size that there is. */
    function fit() {
      if (!scene || !holder.clientWidth) return;
      frame = framed();
      draw();
    }

    /** Go to an epoch by its number in the scene, gliding there in `time` ms. */
    function at(next, time = 0) {
      if (!scene || !frame) return;
      index = Math.min(next, scene.epochs.length - 1);
      cancelAnimationFrame(gliding);
      const [from, to, start] = [places, scene.at[index], performance.now()];
      const glides = time && !calm.matches && scene.points.length <= MOST_GLIDING;
      const step = (now) => {
        const share = glides ? Math.min((now - start) / time, 1) : 1;
        places = share < 1 ? to.map((place, i) => between(from[i] ?? place, place, share)) : to;
        draw();
        if (share < 1) gliding = requestAnimationFrame(step);
      };
      step(start);
    }

    const between = (from, to, share) =>
      to && to.map((value, axis) => from[axis] + (value - from[axis]) * share);

    const trailed = () => options.trails && scene.points.length <= MOST_TRAILS;

    /** Ranges of the axes that hold all epochs; one scale for all, so that distances compare. */
    function framed() {
      const spans = [0, 1, 2].map((axis) => {
        const values = scene.at.flatMap((places) =>
          places.flatMap((place) => (place ? [place[axis]] : [])));
        const low = values.reduce((a, b) => Math.min(a, b));
        const high = values.reduce((a, b) => Math.max(a, b));
        return { middle: (low + high) / 2, span: high - low };
      });
      const wide = Math.max(holder.clientWidth - MARGIN.l - MARGIN.r, 90);
      const high = Math.max(holder.clientHeight - MARGIN.t - MARGIN.b, 60);
      const unit = Math.max(spans[0].span / (wide - 60), spans[1].span / (high - 40)) || 1;
      const around = ({ middle }, size) => [middle - size / 2, middle + size / 2];
      const cube = Math.max(...spans.map(({ span }) => span)) * 1.1 || 1;
      return {
        wide, high,
        flat: [around(spans[0], wide * unit), around(spans[1], high * unit)],
        cube: spans.map((span) => around(span, cube)),
      };
    }

    function draw() {
      const flat = options.dimensions === 2;
      const traces = [...(trailed() ? trails() : []), ...marks()];
      const ranges = flat ? frame.flat : frame.cube;
      const name = (i, unit) => `PC ${i + 1} (${Math.round(scene.explained[i] * 100)} %${unit})`;
      const { ink, quiet, grid } = Colours.theme();
      const layout = Colours.layout({
        width: holder.clientWidth, height: holder.clientHeight, showlegend: false,
        hovermode: "closest", dragmode: flat ? "pan" : "orbit",
        uirevision: options.key + options.dimensions, // what is turned and zoomed by hand stays
        modebar: { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink },
        ...(flat ? {
          margin: MARGIN,
          xaxis: { range: ranges[0], automargin: false,
            title: { text: name(0, " of variance"), font: { size: 12 }, standoff: 6 } },
          yaxis: { range: ranges[1], automargin: false },
          title: { text: name(1, " of variance"), x: 0, xanchor: "left", y: 1, yanchor: "top",
            yref: "container", pad: { l: 6, t: 6 }, font: { size: 12, color: ink } },
          annotations: labels(ranges),
        } : {
          margin: { l: 0, r: 0, t: 0, b: 0 },
          scene: { aspectmode: "cube",
            camera: { eye: { x: 1.65, y: 1.65, z: 0.8 }, center: { x: 0, y: 0, z: -0.12 } },
            ...Object.fromEntries(["xaxis", "yaxis", "zaxis"].map((axis, i) => [axis, {
              range: ranges[i], title: { text: name(i, ""), font: { size: 11 } }, nticks: 5,
              gridcolor: grid, color: quiet, showbackground: false, zeroline: false,
              showspikes: false,
            }])) },
        }),
      });
      Plotly.react(plot, traces, layout, CONFIG);
      plot.setAttribute("aria-label",
        `${scene.points.length} vectors as points at epoch ${scene.epochs[index]}`);
    }

    /** Points that look alike, by number: a trace each; those of A come last, on top. */
    function groups() {
      const found = new Map();
      scene.points.forEach((point, i) => {
        const key = JSON.stringify([-options.kind(point.sentence), colour(point, 0)]);
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(i);
      });
      return [...found].sort(([a], [b]) => JSON.parse(a)[0] - JSON.parse(b)[0])
        .map(([, members]) => members);
    }

    function colour(point, epoch) {
      if (options.colour === "word") return Colours.word(point.token);
      if (options.colour === "sentence") return Colours.sentence(point.sentence);
      if (options.colour === "epoch") {
        return Colours.epoch(epoch / Math.max(scene.epochs.length - 1, 1));
      }
      return Colours.vector[point.vector];
    }

    /** Coordinates of `places` for a trace; null breaks a line. */
    function coordinates(places) {
      const flat = options.dimensions === 2;
      const type = flat ? (scene.points.length > MOST_SVG ? "scattergl" : "scatter") : "scatter3d";
      const axes = ["x", "y", "z"].slice(0, options.dimensions);
      return { type, ...Object.fromEntries(
        axes.map((axis, i) => [axis, places.map((place) => place?.[i] ?? null)])) };
    }

    function marks() {
      const flat = options.dimensions === 2;
      const size = scene.points.length > 400 ? 6 : scene.points.length > 60 ? 8 : 10;
      const named = flat ? new Map() : namesInSpace();
      return groups().map((members) => {
        const kind = options.kind(scene.points[members[0]].sentence);
        const color = colour(scene.points[members[0]], index);
        const trace = coordinates(members.map((i) => places[i]));
        return {
          ...trace, mode: flat ? "markers" : "markers+text", customdata: members, hoverinfo: "none",
          marker: { color, symbol: Key.symbol(kind),
            size: (size * (kind % 2 ? 1.4 : 1)) / (flat ? 1 : 1.8),
            line: { width: flat && kind % 2 ? 2 : 0 } },
          ...(flat ? {} : { textfont: { size: 10, color }, textposition: "top center",
            text: members.map((i) => Colours.plain3d(named.get(i) ?? "")) }),
        };
      });
    }

    /** Each point's way so far: all of it faint, its last epochs less so, its start a ring. */
    function trails() {
      const flat = options.dimensions === 2;
      return groups().flatMap((members) => {
        const point = scene.points[members[0]];
        const dash = Key.dash(options.kind(point.sentence));
        const way = (from, to) => coordinates(members.flatMap((i) =>
          [...scene.at.slice(from, to).map((epoch) => epoch[i]),
            to === index ? places[i] : scene.at[to][i], null]));
        const line = (from, to, epoch, opacity) => ({
          ...way(from, to), mode: "lines", hoverinfo: "skip", opacity,
          line: { color: colour(point, epoch), width: flat ? 1.6 : 4, dash },
        });
        const start = { ...coordinates(members.map((i) => scene.at[0][i])), mode: "markers",
          hoverinfo: "skip",
          marker: { color: colour(point, 0), symbol: "circle-open", size: flat ? 6 : 3 } };
        if (options.colour !== "epoch") {
          const recent = line(Math.max(index - RECENT, 0), index, index, 0.8);
          return [line(0, index, index, 0.5), recent, start];
        }
        const steps = Array.from({ length: index }, (_, epoch) =>
          line(epoch, epoch + 1, epoch + 1, 0.9));
        return [...steps, start];
      });
    }

    /** What stands at a place: "eat q · A and B". */
    function text(points) {
      const sentences = new Map();
      for (const { token, vector, sentence } of points) {
        const name = `${token} ${vector}`;
        sentences.set(name, [...(sentences.get(name) ?? []), sentence]);
      }
      const names = [...sentences].map(([name, own]) => {
        const letters = [...new Set(own.map(options.letter).filter(Boolean))];
        if (options.lettered) return letters.length ? `${name} · ${letters.join(" and ")}` : name;
        return own.length > 1 ? `${name} ×${own.length}` : name;
      });
      const more = names.length > 2 ? ` +${names.length - 2}` : "";
      return names.slice(0, 2).join(", ") + more;
    }

    /** Names by a point's number; of points in one place the last, which lies on top, has it. */
    function namesInSpace() {
      if (scene.points.length > MOST_NAMED) return new Map();
      const together = new Map();
      places.forEach((place, i) => {
        const key = place?.map((value) => value.toPrecision(3)).join();
        if (place) together.set(key, [i, ...(together.get(key) ?? [])]);
      });
      return new Map([...together.values()].map((members) =>
        [members[0], text(members.toReversed().map((i) => scene.points[i]))]));
    }

    const labels = (ranges) => Labels.place(
      scene.points.flatMap((point, i) => {
        const place = places[i];
        return place ? [{ ...point, x: place[0], y: place[1] }] : [];
      }), ranges, frame.wide, frame.high, text, MOST_PLACES);

    function listen() {
      plot.on("plotly_hover", ({ points: [{ customdata }], event }) =>
        customdata !== undefined && pointed(scene.points[customdata], event.clientX, event.clientY));
      plot.on("plotly_unhover", () => pointed(null));
    }

    Plotly.newPlot(plot, [], {}, CONFIG).then(listen);

    new ResizeObserver(fit).observe(holder);

    return { show, at };
  }

  return { create, MOST_TRAILS };
})();
