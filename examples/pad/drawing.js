/** The strokes on the board, each a line of points. Coordinates are integers on a board of fixed size. */

const board = { width: 1600, height: 1000 };

/** How many colours and widths the page offers. */
const colours = 6;
const widths = 3;

/** Beyond this, the oldest strokes are removed. A full board is about 2 MB. */
const maxPoints = 200_000;
const maxStrokes = 5_000;

/** A message contains the few points of one animation frame. */
const maxPointsPerMessage = 256;

export class Drawing {
  /** @type {Map<string, { id: string, colour: number, width: number, points: [number, number][] }>} */
  #strokes = new Map();
  #points = 0;

  constructor(strokes = []) {
    for (const stroke of strokes) this.begin(stroke.id, stroke);
  }

  get strokes() {
    return [...this.#strokes.values()];
  }

  /** Begins a stroke. Returns the accepted stroke, or `undefined` if it is invalid. */
  begin(id, { colour, width, points }) {
    if (this.#strokes.has(id) || !isIndex(colour, colours) || !isIndex(width, widths)) return undefined;
    if (!Array.isArray(points) || points.length === 0) return undefined;
    const stroke = { id, colour, width, points: points.map(toPoint) };
    if (stroke.points.includes(undefined)) return undefined;
    this.#strokes.set(id, stroke);
    this.#points += stroke.points.length;
    this.#removeOldest();
    return stroke;
  }

  /** Adds points to a stroke. Returns the accepted points, or `undefined` if they are invalid. */
  extend(id, points) {
    const stroke = this.#strokes.get(id);
    if (!stroke || !Array.isArray(points) || points.length > maxPointsPerMessage) return undefined;
    const added = points.map(toPoint);
    if (added.includes(undefined)) return undefined;
    stroke.points.push(...added);
    this.#points += added.length;
    this.#removeOldest();
    return added;
  }

  /** Removes a stroke. Returns whether it existed. */
  remove(id) {
    const stroke = this.#strokes.get(id);
    if (!stroke) return false;
    this.#points -= stroke.points.length;
    return this.#strokes.delete(id);
  }

  clear() {
    this.#strokes.clear();
    this.#points = 0;
  }

  #removeOldest() {
    for (const id of this.#strokes.keys()) {
      if (this.#points <= maxPoints && this.#strokes.size <= maxStrokes) return;
      this.remove(id);
    }
  }
}

/** Returns a point within the board, or `undefined` if the value is not two numbers. */
export function toPoint(point) {
  if (!Array.isArray(point) || !point.every(Number.isFinite) || point.length !== 2) return undefined;
  return [clamp(point[0], board.width), clamp(point[1], board.height)];
}

function clamp(value, max) {
  return Math.round(Math.min(Math.max(value, 0), max));
}

function isIndex(value, count) {
  return Number.isInteger(value) && value >= 0 && value < count;
}
