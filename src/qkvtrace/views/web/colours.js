/* One palette for every picture: the same colour for the same vector, word, sentence and epoch.
 *
 * After Okabe and Ito, which every kind of colour vision tells apart. The hues of q, k, v and x1 stand
 * out from white and from dark paper alike, so that they need no second set for dark.
 */
"use strict";

const Colours = (() => {
  const vector = {
    q: "#0072b2",
    k: "#cc79a7",
    v: "#009e73",
    x1: "#d55e00",
    x4: "#e69f00",
    output: "#56b4e9",
  };
  const hues = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7fd1",
    "#a6761d", "#5c8a3a", "#b2405a", "#3f9aa8", "#7d8590",
    // Beyond these, lighter and darker ones: no more hues can be told apart.
    "#4d8fb3", "#f0996b", "#52b898", "#a85f88", "#b8860b", "#8fbfe0", "#6a5acd", "#7a5a22",
    "#88b060", "#d4778c", "#6fbcc6", "#a2a9b3"];
  const learned = ["#6340b0", "#a13b9b", "#d0486f", "#e3743c", "#e9a62b"]; // epochs, first to last
  const font = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const light = {
    dark: false, paper: "#ffffff", panel: "#f5f6f8", ink: "#1c2026", quiet: "#626a75",
    grid: "#e2e5e9", accent: "#0072b2", font,
  };
  const dark = {
    dark: true, paper: "#1d2025", panel: "#262a31", ink: "#e9ebee", quiet: "#a4abb6",
    grid: "#3a3f48", accent: "#56b4e9", font,
  };

  let current = light;
  const told = []; // who wants to know of a change
  const words = new Map();

  /** Words take colours in the order in which they are first named: name a run's words once, in order. */
  function know(tokens) {
    for (const token of tokens) if (!words.has(token)) words.set(token, words.size);
  }

  function word(token) {
    know([token]);
    return hues[words.get(token) % hues.length];
  }

  const sentence = (index) => hues[index % hues.length];

  /** fraction: 0 the first epoch, 1 the last. */
  const epoch = (fraction) => between(learned, fraction);

  /** A colour at `fraction` of the way through evenly spaced ones. */
  function between(stops, fraction) {
    const place = Math.min(Math.max(fraction, 0), 1) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    const [a, b] = [parts(stops[from]), parts(stops[from + 1])];
    return `rgb(${a.map((part, i) => Math.round(part + (b[i] - part) * (place - from))).join(",")})`;
  }

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  /** Plotly's form of a colour scale. */
  const scale = (stops) => stops.map((stop, i) => [i / (stops.length - 1), stop]);

  const weightStops = () => (current.dark ? [current.paper, "#cfe4ff"] : ["#ffffff", "#08306b"]);
  const divergingStops = () => ["#0072b2", current.paper, "#d55e00"];

  /** A layout for Plotly; what `extra` says of an axis or a font is added to it. */
  function layout(extra = {}) {
    const axis = { gridcolor: current.grid, linecolor: current.grid, zerolinecolor: current.grid,
      automargin: true };
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: font, size: 12, color: current.ink },
      hoverlabel: { bgcolor: current.panel, bordercolor: current.grid,
        font: { family: font, size: 12, color: current.ink } },
      colorway: hues,
      margin: { l: 48, r: 12, t: 28, b: 40 },
      xaxis: axis,
      yaxis: axis,
    };
    const whole = { ...base, ...extra };
    for (const name of Object.keys(whole)) {
      if (/^[xy]axis\d*$/.test(name)) whole[name] = { ...axis, ...extra[name] };
      else if (name in extra && ["font", "hoverlabel", "margin"].includes(name))
        whole[name] = { ...base[name], ...extra[name] };
    }
    return whole;
  }

  /** Text of a corpus as Plotly shows it unchanged: it reads some HTML in labels and hover texts. */
  const plain = (text) =>
    String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  /** The same for labels in 3-d, where Plotly reads tags but no entities. */
  const plain3d = (text) => String(text).replace(/</g, "<\u2060");

  /** Dark or light, as <html data-theme> tells the style sheet and `changed` tells the pictures. */
  function use(isDark) {
    current = isDark ? dark : light;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    for (const changed of told) changed(current);
  }

  /** Follow TensorBoard's mode if this is a frame of its, or else the system's; call back on change. */
  function follow(changed) {
    if (changed) told.push(changed);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const board = boardBody();
    const look = () => {
      const isDark = board ? board.classList.contains("dark-mode") : system.matches;
      if (isDark !== current.dark || !document.documentElement.dataset.theme) use(isDark);
    };
    if (board) new MutationObserver(look).observe(board, { attributeFilter: ["class"] });
    else system.addEventListener("change", look);
    look();
  }

  function boardBody() {
    try {
      return window.parent === window ? null : window.parent.document.body;
    } catch {
      return null; // a frame of another host
    }
  }

  return {
    vector, word, know, sentence, epoch, hues,
    get weights() { return scale(weightStops()); },
    get diverging() { return scale(divergingStops()); },
    theme: () => current,
    layout, plain, plain3d, follow,
  };
})();
