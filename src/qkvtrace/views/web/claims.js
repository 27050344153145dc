/* What texts claim, as a section of a page: a verdict on each claim, and every seed as a dot.
 *
 * A report is what claims/<date>_<time>/claims.json holds, see qkvtrace/studies/evidence/kept.py: null
 * stands for a number that is not finite.
 */
"use strict";

const Claims = (() => {
  const { html, svg } = Drawing;
  const NAME = "claims";
  const FEWEST = 8; // seeds of which an interval is made
  const MARKS = { "holds": "✓", "true by construction": "≡", "does not hold": "✗", "undecided": "?" };
  const FONT = 12; // pixels of the letters in a picture
  const WIDE = 620; // pixels from which names of controls stand beside their rows
  const MARGIN = 18; // pixels beside the axis, for half a label
  const BAND = 16; // pixels of a line of text
  const BAR = 14; // pixels for the mean and its interval, below the seeds
  const MOST = { effect: 56, control: 26 }; // pixels of a row's seeds
  const LEAST_STEP = { linear: 78, log: 46 }; // pixels between two ticks

  const seeds = (count) => (count === 1 ? "1 seed" : `${count} seeds`);
  const epochs = (count) => (count === 1 ? "1 epoch" : `${count} epochs`);
  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  /** A report's place in the page and its title, as a study has them. */
  const titled = (report) => ({ name: NAME, title: `What texts claim, over ${seeds(report.seeds.length)}` });

  function section(report, number) {
    const count = report.seeds.length;
    return html("section", { class: "study claims", id: NAME },
      html("h2", { text: `${number}. ${titled(report).title}` }),
      html("p", { class: "question", text: "Is what tutorials write about Q, K and V true of models like "
        + "this one, whatever the seed they start from?" }),
      html("p", { class: "says", text: summary(report.results, count) }),
      html("p", { class: "note", text: madeOf(report) }),
      verdicts(report.results, count), key(),
      ...report.results.map((result) => claim(result, report.seeds)));
  }

  /** How many claims came out which way. */
  function summary(results, count) {
    const ways = [["holds", "hold"], ["true by construction", "true by construction"],
      ["does not hold", "not hold"], ["undecided", `undecided at ${seeds(count)}`]];
    const said = ways.map(([verdict, plural]) => {
      const found = results.filter((result) => result.verdict === verdict).length;
      const verb = { "holds": found === 1 ? "holds" : "hold",
        "does not hold": found === 1 ? "does not hold" : "do not hold" }[verdict];
      return found ? `${found} ${verb ?? `${found === 1 ? "is" : "are"} ${plural}`}` : null;
    }).filter(Boolean);
    return `Of ${results.length === 1 ? "1 claim" : `${results.length} claims`}, ${listed(said)}.`;
  }

  const listed = (words) => [words.slice(0, -1).join(", "), ...words.slice(-1)].filter(Boolean).join(" and ");

  /** When, on what and with what the claims were tested. */
  function madeOf(report) {
    const { seeds: tested, held_out: heldOut, versions, git_revision: revision } = report;
    const [first, last] = [tested[0], tested[tested.length - 1]];
    const whole = last - first === tested.length - 1 && first !== last;
    return `Tested ${report.made.slice(0, 16).replace("T", " ")} UTC on ${report.corpus}, `
      + `${epochs(report.epochs)} each, ${tested.length === 1 ? "seed" : "seeds"} `
      + `${whole ? `${first} to ${last}` : listed(tested.map(String))}; generalisation on ${heldOut.corpus}, `
      + `${epochs(heldOut.epochs)}. qkvtrace ${versions.qkvtrace}${revision ? ` (${revision.slice(0, 10)})` : ""}, `
      + `PyTorch ${versions.torch}.`;
  }

  /** Each claim and what came out, with a link to it. */
  const verdicts = (results, count) => html("table", { class: "verdicts" }, html("tbody", {},
    ...results.map((result) => html("tr", {},
      html("td", {}, html("a", { href: `#${place(result)}`, text: `${result.letter}. ${result.title}` })),
      html("td", {}, badge(result.verdict, count))))));

  const place = (result) => `claim-${result.name}`;

  const worded = (verdict, count) => (verdict === "undecided" ? `undecided at ${seeds(count)}` : verdict);

  const badge = (verdict, count) => html("span", { class: `badge ${verdict.replaceAll(" ", "-")}` },
    html("span", { class: "mark", "aria-hidden": "true", text: MARKS[verdict] }), ` ${worded(verdict, count)}`);

  const key = () => Key.create([
    { text: "one seed", colour: "var(--accent)", symbol: "circle" },
    { text: "one seed of a control", colour: "var(--quiet)", symbol: "circle" },
    { text: "mean and its 95 % interval", dash: "solid", symbol: "diamond" },
    { text: "the least that the claim asks for", dash: "dash" },
  ]);

  function claim(result, tested) {
    return html("article", { class: "claim", id: place(result) },
      html("h3", {}, `${result.letter}. ${result.title} `, badge(result.verdict, tested.length)),
      html("p", { class: "sentence" }, `“${result.sentence}” `, html("span", { class: "from", text: result.source })),
      ...result.findings.map((finding) => figure(finding, tested)));
  }

  /** A part of a claim: what it says, what came out, and all seeds. */
  function figure(finding, tested) {
    const { part, controls, values } = finding;
    const strip = html("div", { class: "strip" });
    resized.observe(strip);
    strip.draw = () => draw(strip, finding, tested);
    const columns = ["seed", "measured", ...controls.map(({ name }) => name)];
    const cells = (value) => (part.because === null ? value : number(value));
    const rows = tested.map((seed, i) => [seed, ...[values, ...controls.map((control) => control.values)]
      .map((each) => cells(each[i] ?? null))]);
    return html("figure", {},
      html("figcaption", {}, html("span", { text: part.says }, ...(part.beyond
        ? [" ", html("span", { class: "beyond", text: "(beyond the claim, which it does not decide)" })] : [])),
        " ", badge(finding.verdict, tested.length)),
      html("p", { class: "measure", text: `Measured: ${part.measure}` }),
      strip,
      html("p", { class: "found", text: found(finding) }),
      ...(part.because === null ? [] : [html("p", { class: "found", text: `It must be so: ${part.because}.` })]),
      ...asMuch(finding),
      Tables.folded(columns, rows));
  }

  /** What came out for a part, in words. */
  function found({ part, values, interval: { mean, low, high }, verdict }) {
    const least = number(part.least);
    const over = `over ${seeds(values.length)}`;
    if (part.because !== null) {
      const largest = number(Math.max(...values.map(Math.abs)));
      return `Largest deviation ${largest} ${over}; rounding explains at most ${least}.`;
    }
    if (mean === null) return `No mean ${over}: some have no number.`;
    if (values.length < FEWEST) return `Mean ${number(mean)} ${over}: an interval takes ${FEWEST}.`;
    const [middle, from, to] = together([mean, low, high]);
    const lies = { "holds": `all of it above ${least}`, "does not hold": `all of it below ${least}`,
      "undecided": `${least} lies within` }[verdict];
    return `Mean ${middle} ${over}, 95 % interval ${from} to ${to}: ${lies}.`;
  }

  /** Which controls show as much, as far as can be told: there the measure says little. */
  function asMuch({ part, values, controls, interval }) {
    if (values.length < FEWEST || interval.mean === null) return [];
    const names = controls.filter(({ exceeded }) => !exceeded)
      .map(({ name }) => `“${name}”`);
    if (!names.length) return [];
    const control = names.length === 1 ? "the control" : "the controls";
    return [html("p", { class: "found warned", text: part.because === null
      ? `Not surely more than in ${control} ${listed(names)}.`
      : `${capital(control)} ${listed(names)} ${names.length === 1 ? "is" : "are"} as exact.` })];
  }

  /* Pictures. A row is the effect or a control: {name, values, interval, kind}. */

  const resized = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const width = Math.floor(contentRect.width);
      if (width > 0 && target.drawnAt !== width) {
        target.drawnAt = width;
        target.draw();
      }
    }
  });

  function draw(strip, finding, tested) {
    const { part } = finding;
    const width = strip.drawnAt;
    const rows = [
      { name: "", values: finding.values, interval: finding.interval, kind: "effect" },
      ...finding.controls.map((control) => ({ ...control, kind: "control" })),
    ];
    const wide = width >= WIDE && rows.length > 1;
    const longest = Math.max(...rows.map(({ name }) => Drawing.width(name, FONT)));
    const left = wide ? Math.ceil(Math.min(longest, width / 4)) + 2 * MARGIN : MARGIN;
    const [from, to] = [left, width - MARGIN];
    const axis = scale(finding, rows, from, to);
    const radius = Math.min(4, Math.max(1.4, 19 / Math.sqrt(tested.length)));
    const picture = svg("svg", { width, role: "img", "aria-label": `${part.says} ${found(finding)}` });
    let down = BAND + 4;
    for (const row of rows) {
      const dots = swarm(row.values, axis, radius, MOST[row.kind]);
      if (row.name && !wide) {
        picture.append(label(cut(row.name, to - from), { x: from - MARGIN + 2, y: down + FONT, class: "name" }));
        down += BAND;
      }
      const middle = down + dots.high / 2;
      if (row.name && wide)
        picture.append(label(cut(row.name, left - 2 * MARGIN),
          { x: left - 2 * MARGIN, y: middle + 4, "text-anchor": "end", class: "name" }));
      picture.append(svg("path", { class: `dots ${row.kind}`, "stroke-width": 2 * radius,
        d: dots.places.map(({ x, y }) => `M${x.toFixed(1)} ${(middle + y).toFixed(1)}h0`).join("") }));
      Object.assign(row, { dots, middle });
      down += dots.high;
      picture.append(average(row, axis, down + BAR / 2));
      down += BAR + 6;
    }
    picture.prepend(...grid(axis, down), bound(part, axis, down, from - MARGIN, width));
    picture.append(...ticks(axis, down));
    const unit = cut(part.unit, to - from);
    picture.append(label(unit, { x: to, y: down + 2 * BAND + 2, "text-anchor": "end", class: "unit" }));
    const high = down + 2 * BAND + 8;
    Drawing.set(picture, { height: high, viewBox: `0 0 ${width} ${high}` });
    picture.addEventListener("pointermove", (event) => point(event, picture, rows, tested));
    picture.addEventListener("pointerleave", Drawing.hush);
    strip.replaceChildren(picture);
  }

  const label = (text, attributes) => svg("text", { "font-size": FONT, ...attributes }, text);

  /** The text, or as much of it as `room` pixels hold. */
  function cut(text, room) {
    let kept = text;
    while (kept.length > 1 && Drawing.width(kept === text ? text : `${kept}…`, FONT) > room) kept = kept.slice(0, -1);
    return kept === text ? text : `${kept.trimEnd()}…`;
  }

  /** The places of numbers across, from `from` to `to` pixels: {at, ticks}; at(null) is null.
   *
   * An identity's deviations, 1e-7 and the like beside controls of 1, are as far from 0 as their
   * logarithm says; what is exactly 0 stands at the left.
   */
  function scale({ part }, rows, from, to) {
    const numbers = [part.least, ...rows.flatMap(({ values, interval }) =>
      [...values, ...(interval.low === null ? [] : [interval.low, interval.high])])]
      .filter((value) => value !== null);
    return part.because === null ? linear(numbers, from, to) : logarithmic(numbers.map(Math.abs), from, to);
  }

  const extent = (numbers) => [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];

  function linear(numbers, from, to) {
    let [low, high] = extent(numbers);
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const room = (high - low) * 0.04;
    [low, high] = [low - room, high + room];
    const step = nice(((high - low) * LEAST_STEP.linear) / (to - from));
    const first = Math.ceil(low / step);
    const count = Math.floor(high / step) - first + 1;
    const at = (value) => (value === null ? null : from + ((value - low) / (high - low)) * (to - from));
    const written = decimals(step);
    return { at, ticks: Array.from({ length: count }, (_, i) => (first + i) * step)
      .map((value) => ({ x: at(value), text: written(value) })) };
  }

  function logarithmic(numbers, from, to) {
    const positive = numbers.filter((value) => value > 0);
    const [least, most] = extent(positive.length ? positive : [1]);
    const zero = numbers.includes(0) || least === most;
    let low = Math.floor(Math.log10(least));
    const high = Math.max(Math.ceil(Math.log10(most)), low + 1);
    if (zero) low -= 1; // where 0 stands
    const across = (power) => from + ((power - low) / (high - low)) * (to - from);
    const at = (value) => (value === null ? null
      : across(value === 0 ? low : Math.min(Math.max(Math.log10(Math.abs(value)), low), high)));
    const every = Math.ceil(LEAST_STEP.log / (across(low + 1) - across(low)));
    const powers = Array.from({ length: high - low + 1 }, (_, i) => high - i)
      .filter((power, i) => i % every === 0 && !(zero && power < low + Math.max(1, every / 2)));
    return { at, ticks: [...(zero ? [{ x: at(0), text: "0" }] : []),
      ...powers.map((power) => ({ x: across(power), text: [1, 10][power] ?? `10${raised(power)}` }))] };
  }

  const raised = (power) => [...String(power)].map((letter) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(letter)]).join("");

  /** 1, 2 or 5 times a power of ten, `least` or more. */
  function nice(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9));
  }

  /** How multiples of a step are written. */
  function decimals(step) {
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return (value) => (digits > 4 ? number(value) : Drawing.number(value, digits));
  }

  /** A dot for each value that is a number: {places: [{x, y, i}], high}, y from the row's middle.
   *
   * Dots that would touch stand above and below each other in turn; a crowd that is higher than
   * `most` pixels is pressed together.
   */
  function swarm(values, axis, radius, most) {
    const ends = []; // where each level has its last dot
    const places = values.map((value, i) => ({ x: axis.at(value), i })).filter(({ x }) => x !== null)
      .sort((one, other) => one.x - other.x);
    for (const dot of places) {
      let level = ends.findIndex((end) => end <= dot.x - 2 * radius);
      if (level < 0) level = ends.length;
      ends[level] = dot.x;
      dot.level = (level % 2 ? 1 : -1) * Math.ceil(level / 2);
    }
    const reach = Math.ceil((ends.length - 1) / 2);
    const step = Math.min(2 * radius, reach ? (most / 2 - radius) / reach : 0);
    for (const dot of places) dot.y = dot.level * step;
    return { places, high: 2 * (reach * step + radius) + 2 };
  }

  /** The mean as a diamond on the line of its interval. */
  function average({ interval: { mean, low, high }, kind }, axis, y) {
    const made = svg("g", { class: `average ${kind}` });
    if (mean === null) return made;
    const x = axis.at(mean);
    if (low !== null) {
      const [from, to] = [axis.at(low), axis.at(high)];
      made.append(svg("path", { d: `M${from} ${y - 4}v8M${from} ${y}H${to}M${to} ${y - 4}v8` }));
    }
    made.append(svg("rect", { x: x - 3.5, y: y - 3.5, width: 7, height: 7, transform: `rotate(45 ${x} ${y})` }));
    return made;
  }

  const grid = (axis, down) => [
    ...axis.ticks.map(({ x }) => svg("line", { class: "grid", x1: x, x2: x, y1: BAND + 2, y2: down })),
  ];

  const ticks = (axis, down) => axis.ticks.map(({ x, text }) =>
    label(text, { x, y: down + BAND, "text-anchor": "middle", class: "tick" }));

  /** The dashed line, and what it asks for. */
  function bound(part, axis, down, left, right) {
    const x = axis.at(part.least);
    const text = `${part.because === null ? "at least" : "at most"} ${number(part.least)}`;
    const half = Drawing.width(text, FONT) / 2 + 2;
    const middle = Math.min(Math.max(x, left + half), right - half);
    return svg("g", { class: "bound" },
      svg("line", { x1: x, x2: x, y1: BAND + 2, y2: down }),
      label(text, { x: middle, y: FONT, "text-anchor": "middle" }));
  }

  /** Say which seed is pointed at, and its number. */
  function point(event, picture, rows, tested) {
    const box = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = rows.flatMap((row) => row.dots.places.map((dot) =>
      ({ row, dot, away: Math.hypot(dot.x - x, row.middle + dot.y - y) })))
      .reduce((one, other) => (other.away < one.away ? other : one), { away: 12 });
    if (!near.dot) return Drawing.hush();
    const name = near.row.name ? `${near.row.name}, ` : "";
    return Drawing.tell([`${name}seed ${tested[near.dot.i]}: ${number(near.row.values[near.dot.i])}`],
      event.clientX, event.clientY);
  }

  /* Numbers: three digits, as qkvtrace/views/claims.py writes them. */

  const number = (value) => (value === null ? "–"
    : together([value])[0].replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, ""));

  /** Numbers with as many decimals as give the largest three digits. */
  function together(values) {
    const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
    if (largest && (largest < 1e-3 || largest >= 1e5))
      return values.map((value) => (value ? minus(value.toExponential(1)) : "0"));
    const digits = largest ? Math.max(0, 2 - Math.floor(Math.log10(largest))) : 0;
    return values.map((value) => Drawing.number(value, digits));
  }

  const minus = (text) => text.replaceAll("-", "−").replace("e+", "e");

  return { titled, section };
})();
