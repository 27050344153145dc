/* What pictures are made of: elements, numbers as text, and a card that says what is pointed at.
 *
 * Text of a corpus becomes textContent, never markup.
 */
"use strict";

const Drawing = (() => {
  /** An SVG element. */
  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    set(made, attributes);
    made.append(...children);
    return made;
  }

  /** An HTML element; `text` is its text, other names are attributes. */
  function html(tag, { text, ...attributes } = {}, ...children) {
    const made = document.createElement(tag);
    set(made, attributes);
    if (text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
  }

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === false) element.removeAttribute(name);
      else element.setAttribute(name, value === true ? "" : value);
    }
  }

  /** A number in at most `digits` decimals, with a true minus. */
  const number = (value, digits = 2) =>
    value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-/, "−")
      .replace(/^−(0(\.0+)?)$/, "$1");

  /** The same in little room: .98, −.12, 1 */
  const short = (value) => number(value).replace(/^(−?)0\./, "$1.").replace(/\.00$/, "")
    .replace(/^−?$/, "0");

  const pen = document.createElement("canvas").getContext("2d");

  /** How wide a text is, in pixels. */
  function width(text, size) {
    pen.font = `${size}px ${Colours.theme().font}`;
    return pen.measureText(text).width;
  }

  let card = null;

  /** Show the card with `lines` (nodes or text) near a place in the window; nothing hides it. */
  function tell(lines, x, y) {
    card ??= document.body.appendChild(html("div", { class: "explorer-card", role: "tooltip" }));
    card.replaceChildren(
      ...lines.map((line) => (line instanceof Node ? line : html("div", { text: line }))));
    card.hidden = false;
    const { width, height } = card.getBoundingClientRect();
    const right = x + 14 + width < innerWidth ? x + 14 : x - 14 - width;
    card.style.left = `${Math.max(4, right)}px`;
    card.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - height - 4))}px`;
  }

  function hush() {
    if (card) card.hidden = true;
  }

  return { svg, html, set, number, short, width, tell, hush };
})();
