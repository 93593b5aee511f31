/**
 * What each document of one query does to the query's vector: one component of minus the gradient of InfoNCE for each.
 * The same formulas stand in `_pulls.py`; tests hold both to torch.
 */
import { infoNceRow } from "./contrastive.js";

const RADIANS = Math.PI / 180;

/** The point at `degrees`, `length` from the middle. */
export const polar = (degrees, length = 1) => [length * Math.cos(degrees * RADIANS), length * Math.sin(degrees * RADIANS)];

/** s_j: cosines, or dot products of vectors that have lengths. */
export function scoresOf({ angles, lengths, normalize }) {
  const [query, ...documents] = angles;
  return documents.map((degrees, j) => Math.cos((degrees - query) * RADIANS) * (normalize ? 1 : lengths[0] * lengths[j + 1]));
}

/**
 * @param {object} points
 * @param {number[]} points.angles  degrees: the query, its positive, the negatives
 * @param {number[]} points.lengths  of the same vectors; all 1 with `normalize`
 * @param {number} points.temperature
 * @param {boolean} points.normalize  cosines rather than dot products
 * @returns what `infoNceRow` gives, and: `scores`; `forces` [x, y], −∂L/∂q document by document, times the temperature; `portions`,
 *   each negative's part of all the negatives' force, by length; `units`, the forces over the length of all the negatives' forces
 *   together; `turn` and `stretch`, of the sum of the forces across and along the query (counter-clockwise and outwards), the
 *   latter 0 with `normalize`, since a unit vector has no length to change; `step` and `unitStep` [x, y], that sum
 */
export function pulls({ angles, lengths, temperature, normalize }) {
  const scores = scoresOf({ angles, lengths, normalize });
  const row = infoNceRow(scores, 0, temperature);
  const long = scores.map((_, j) => (normalize ? 1 : lengths[j + 1]));
  const directions = scores.map((_, j) => polar(angles[j + 1], long[j]));
  const weights = Array.from(row.gradient, (g) => -g * temperature); // 1 − p for the positive, −p for a negative
  const forces = directions.map(([x, y], j) => [weights[j] * x, weights[j] * y]);
  const pushed = row.shares.reduce((sum, share, j) => sum + (j ? share * long[j] : 0), 0);
  const portions = Array.from(row.shares, (share, j) => (j ? (share * long[j]) / pushed : 0));
  const units = directions.map(([x, y], j) => [(j ? -row.shares[j] : 1) * x / pushed, (j ? -row.shares[j] : 1) * y / pushed]);
  const [out, across] = [polar(angles[0]), polar(angles[0] + 90)];
  const along = (vectors, [ax, ay]) => vectors.reduce((sum, [x, y]) => sum + x * ax + y * ay, 0);
  const together = (vectors) => {
    const turn = along(vectors, across), stretch = normalize ? 0 : along(vectors, out);
    return [turn, stretch, [turn * across[0] + stretch * out[0], turn * across[1] + stretch * out[1]]];
  };
  const [turn, stretch, step] = together(forces), [unitTurn, unitStretch, unitStep] = together(units);
  return { ...row, scores, forces, portions, units, turn, stretch, step, unitTurn, unitStretch, unitStep };
}
