/* Labels of points in the plane, where they can be read: beside their point, never over each other. */
"use strict";

const Labels = (() => {
  const [SIZE, HIGH] = [11, 14]; // pixels of the letters, and of their line
  const NEAR = 6; // pixels: closer points are one place
  const SIDES = [
    { xanchor: "left", yanchor: "middle", xshift: 11, yshift: 0 },
    { xanchor: "right", yanchor: "middle", xshift: -11, yshift: 0 },
    { xanchor: "center", yanchor: "bottom", xshift: 0, yshift: 9 },
    { xanchor: "center", yanchor: "top", xshift: 0, yshift: -9 },
    { xanchor: "left", yanchor: "bottom", xshift: 6, yshift: 6 },
    { xanchor: "right", yanchor: "top", xshift: -6, yshift: -6 },
  ];

  /** Plotly's annotations that name points {x, y, ...} of a plot of `wide` x `high` pixels.
   *
   * ranges: what its two axes show; named: points in one place => their text. None if there are more
   * than `most` places; a label for which there is no room is left out, the later ones first.
   */
  function place(points, ranges, wide, high, named, most = 60) {
    const scale = [wide, high].map((size, i) => size / (ranges[i][1] - ranges[i][0]));
    const spots = together(points, scale);
    if (spots.length > most) return [];
    const taken = spots.map(({ x, y }) => ({ left: x - 6, right: x + 6, low: y - 6, high: y + 6 }));
    return spots.flatMap((spot, own) => {
      const text = named(spot.points);
      for (const side of SIDES) {
        const box = extent(spot, side, Drawing.width(text, SIZE));
        const inside = box.left > ranges[0][0] * scale[0] && box.right < ranges[0][1] * scale[0];
        if (!inside || taken.some((other, i) => i !== own && overlap(box, other))) continue;
        taken.push(box);
        return [{ x: spot.points[0].x, y: spot.points[0].y, text: Colours.plain(text), ...side,
          showarrow: false, font: { size: SIZE, color: Colours.theme().ink } }];
      }
      return [];
    });
  }

  /** Points less than NEAR pixels apart as one: {x, y} in pixels, and its points. */
  function together(points, [across, up]) {
    const spots = [];
    for (const point of points) {
      const [x, y] = [point.x * across, point.y * up];
      const near = spots.find((spot) => Math.hypot(spot.x - x, spot.y - y) < NEAR);
      if (near) near.points.push(point);
      else spots.push({ x, y, points: [point] });
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
