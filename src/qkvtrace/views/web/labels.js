/* Labels of points in the plane, where they can be read: beside their point, never over each other. */
"use strict";

const Labels = (() => {
  const [WIDE, HIGH] = [6.4, 14]; // pixels of a letter, at 11 pixels
  const SIDES = [
    { xanchor: "left", yanchor: "middle", xshift: 8, yshift: 0 },
    { xanchor: "right", yanchor: "middle", xshift: -8, yshift: 0 },
    { xanchor: "center", yanchor: "bottom", xshift: 0, yshift: 7 },
    { xanchor: "center", yanchor: "top", xshift: 0, yshift: -7 },
    { xanchor: "left", yanchor: "bottom", xshift: 6, yshift: 6 },
    { xanchor: "right", yanchor: "top", xshift: -6, yshift: -6 },
  ];

  /** Points {x, y, text} in a plot of `width` x `height` pixels, whose axes show `ranges`.
   *
   * Returns annotations for Plotly. Points that coincide share one label; a label for which there
   * is no room is left out (it shows on hover), the later ones first.
   */
  function place(points, ranges, width, height) {
    const scale = [width, height].map((size, i) => size / (ranges[i][1] - ranges[i][0]));
    const spots = merged(points, scale);
    const taken = spots.map(({ x, y }) => ({ left: x - 4, right: x + 4, low: y - 4, high: y + 4 }));
    const made = [];
    spots.forEach((spot, own) => {
      const text = [...new Set(spot.texts)].join(" · ");
      for (const side of SIDES) {
        const box = extent(spot, side, text.length * WIDE);
        const inside = box.left > ranges[0][0] * scale[0] && box.right < ranges[0][1] * scale[0];
        if (!inside || taken.some((other, i) => i !== own && overlap(box, other))) continue;
        taken.push(box);
        made.push({ x: spot.point.x, y: spot.point.y, text, ...side });
        return;
      }
    });
    return made;
  }

  /** Points less than three pixels apart as one, with the texts of all. */
  function merged(points, [across, up]) {
    const spots = [];
    for (const point of points) {
      const [x, y] = [point.x * across, point.y * up];
      const near = spots.find((spot) => Math.hypot(spot.x - x, spot.y - y) < 3);
      if (near) near.texts.push(point.text);
      else spots.push({ x, y, point, texts: [point.text] });
    }
    return spots;
  }

  function extent({ x, y }, side, wide) {
    const left = x + side.xshift - { left: 0, center: wide / 2, right: wide }[side.xanchor];
    const low = y + side.yshift - { bottom: 0, middle: HIGH / 2, top: HIGH }[side.yanchor];
    return { left, right: left + wide, low, high: low + HIGH };
  }

  const overlap = (a, b) =>
    a.left < b.right && b.left < a.right && a.low < b.high && b.low < a.high;

  return { place };
})();
