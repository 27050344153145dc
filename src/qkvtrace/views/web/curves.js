/* A head in small curves over the epochs; a click goes to an epoch, a drag through them. */
"use strict";

const Curves = (() => {
  const DASHES = ["solid", "dash"]; // the first run, the second

  /** What is drawn: a panel's title, and the names, values and colours of its lines. */
  const panels = () => {
    const { ink, quiet } = Colours.theme();
    return [
      { title: "Entropy of attention, nats", lines: [
        { name: "entropy", values: (scene) => scene.entropy, color: ink },
        { name: "if equal", values: (scene) => scene.uniform, color: quiet, dash: "dot" },
      ] },
      { title: "Mean norm of q, k, v", lines: ["q", "k", "v"].map((vector) => (
        { name: vector, values: (scene) => scene.norms[vector], color: Colours.vector[vector] })) },
      { title: "Scores, least to largest", lines: [
        { name: "least", values: (scene) => scene.low, color: ink },
        { name: "largest", values: (scene) => scene.high, color: ink, fill: "tonexty" },
      ] },
    ];
  };

  /** moved: called with the epoch that somebody clicks at. */
  function create(holder, moved) {
    const plot = Drawing.html("div", { class: "curve" });
    holder.replaceChildren(plot);
    let [epoch, epochs, drawn] = [null, [], false];

    /** scenes: what `curves` answers, a run each. */
    function show(scenes) {
      drawn = scenes.length > 0 && holder.clientWidth > 0;
      if (!drawn) return;
      const all = panels();
      const down = getComputedStyle(holder).flexDirection === "column";
      const share = (i) => [i / all.length + (i ? 0.05 : 0), (i + 1) / all.length - 0.03];
      const axes = Object.fromEntries(all.flatMap((_, i) => {
        const n = i ? i + 1 : "";
        const part = down ? share(all.length - 1 - i) : share(i);
        const x = { anchor: `y${n}`, fixedrange: true,
          showticklabels: !down || i === all.length - 1,
          domain: down ? [0, 1] : part, matches: i ? "x" : undefined };
        return [[`xaxis${n}`, x], [`yaxis${n}`, { anchor: `x${n}`, fixedrange: true, nticks: 4,
          domain: down ? [part[0], part[1] - 0.05] : [0, 0.9] }]];
      }));
      const axis = (i) => (i ? i + 1 : "");
      const every = all.flatMap(({ lines }, i) => scenes.flatMap((scene, run) =>
        lines.map((line) => [scene, run, line, i])));
      const traces = every.map(([scene, run, line, i]) => ({
        type: "scatter", mode: scene.epochs.length > 1 ? "lines" : "markers", name: line.name,
        x: scene.epochs, y: line.values(scene), xaxis: `x${axis(i)}`, yaxis: `y${axis(i)}`,
        line: { color: line.color, width: 1.6, dash: line.dash ?? DASHES[run] },
        marker: { color: line.color }, fill: line.fill, fillcolor: "rgba(128,136,148,0.18)",
        hovertemplate: `%{y:.3~g}<extra>${line.name}</extra>`,
      }));
      const titles = all.map(({ title }, i) => ({
        text: title, xref: `x${axis(i)} domain`, yref: `y${axis(i)} domain`, x: 0, y: 1,
        xanchor: "left", yanchor: "bottom", showarrow: false,
        font: { size: 11, color: Colours.theme().quiet },
      }));
      Plotly.react(plot, traces, Colours.layout({
        ...axes, width: holder.clientWidth, height: holder.clientHeight, annotations: titles,
        shapes: now(), margin: { l: 34, r: 8, t: 4, b: 20 }, showlegend: false, hovermode: "x",
        dragmode: false, font: { size: 10 },
      }), { displayModeBar: false });
      epochs = [...new Set(scenes.flatMap((scene) => scene.epochs))].sort((a, b) => a - b);
    }

    const now = () => (epoch === null ? [] : ["", "2", "3"].map((n) => ({
      type: "line", xref: `x${n}`, yref: `y${n} domain`, x0: epoch, x1: epoch, y0: 0, y1: 1,
      line: { color: Colours.theme().accent, width: 1.5 },
    })));

    /** Mark an epoch. */
    function at(next) {
      epoch = next;
      if (drawn) Plotly.relayout(plot, { shapes: now() });
    }

    /** Go to the epoch under the pointer, in whichever curve it is. */
    function follow(event) {
      const left = event.clientX - plot.getBoundingClientRect().left;
      const { _offset: start, _length: length, range } = nearestAxis(left);
      const wanted = range[0] + ((left - start) / length) * (range[1] - range[0]);
      const away = (other) => Math.abs(other - wanted);
      const nearest = epochs.reduce((one, other) => (away(other) < away(one) ? other : one));
      if (nearest !== epoch) moved(nearest);
    }

    const nearestAxis = (left) => ["xaxis", "xaxis2", "xaxis3"]
      .map((name) => plot._fullLayout[name])
      .reduce((one, other) => (left >= other._offset ? other : one));

    plot.addEventListener("pointerdown", (event) => {
      if (!drawn) return;
      plot.setPointerCapture(event.pointerId); // or else Plotly's cover has the drag
      follow(event);
    }, { capture: true });
    plot.addEventListener("pointermove", (event) => drawn && event.buttons && follow(event),
      { capture: true });

    return { show, at };
  }

  return { create };
})();
