// Colours of graphs, that people with any kind of colour vision can tell apart (after Okabe and Ito), for both themes; and the
// ramp of heat maps, which runs in lightness alone.

const LIGHT = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#b5548a",
  "#8a6d00",
  "#4aa3df",
  "#6b4fa3",
  "#7a8b00",
  "#b3261e",
  "#3d5a6c",
];
const DARK = [
  "#56b4e9",
  "#e69f00",
  "#2fc79a",
  "#e28fc0",
  "#f0e442",
  "#8ab8ff",
  "#b79cf0",
  "#c1d34f",
  "#ff8a80",
  "#a9bcc8",
];

export function isDark() {
  return getComputedStyle(document.documentElement).colorScheme.trim() === "dark";
}

/** @param {number} index */
export function colour(index) {
  const all = isDark() ? DARK : LIGHT;
  return all[index % all.length];
}

/** @returns {{text: string, soft: string, line: string, surface: string, accent: string, focus: string}} */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of("text"),
    soft: of("soft"),
    line: of("line"),
    surface: of("surface"),
    accent: of("accent"),
    focus: of("focus"),
  };
}

/**
 * 256 steps from the surface to the darkest (in the dark: brightest), as RGB.
 * @param {boolean} dark
 * @returns {Uint8ClampedArray}
 */
export function ramp(dark) {
  const stops = dark
    ? [
        [23, 32, 38],
        [15, 74, 92],
        [31, 134, 150],
        [122, 206, 205],
        [240, 252, 240],
      ]
    : [
        [255, 255, 255],
        [190, 222, 230],
        [84, 160, 184],
        [14, 92, 124],
        [4, 32, 56],
      ];
  const all = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i += 1) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    for (let c = 0; c < 3; c += 1) all[i * 3 + c] = stops[low][c] + (stops[low + 1][c] - stops[low][c]) * (place - low);
  }
  return all;
}
